import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { IRecordEnvironment, IStoredRecord } from '../api/record';
import { formatCount } from '../format';
import type { Fact } from '../sidebar/facts';
import { FactList, formatCreated, told } from '../sidebar/facts';
import { Path } from '../sidebar/path';

/** What traces may hold as CUDA's own number: 13020 is 13.2. */
const VERSIONS = new Set(['cuda', 'cuda_driver', 'cuda_runtime', 'gpu']);

/** Where it ran: versions, devices, flags, and whatever else was recorded. */
export function Environment(props: {
  record: IStoredRecord;
  trans: TranslationBundle;
}): React.JSX.Element {
  const { record, trans } = props;
  const { environment } = record;
  return (
    <>
      <FactList
        facts={[
          [
            trans.__('Notebook'),
            record.notebook && <Path path={record.notebook} />
          ],
          [trans.__('Magic'), record.magic && <code>{record.magic}</code>],
          [trans.__('Created'), formatCreated(record.created)],
          ...Object.entries(environment)
            // A processor's own backend has no version but its name.
            .filter(([key, value]) => key !== 'devices' && value !== key)
            .map(([key, value]): Fact => [
              nameOf(key, trans),
              VERSIONS.has(key) ? versionOf(told(value)) : told(value)
            ])
        ]}
      />
      <h3>{trans.__('Devices')}</h3>
      <Devices environment={environment} trans={trans} />
    </>
  );
}

function Devices(props: {
  environment: IRecordEnvironment;
  trans: TranslationBundle;
}): React.JSX.Element {
  const { environment, trans } = props;
  const devices = environment.devices ?? [];
  if (devices.length === 0) {
    return <p>{trans.__('No device was recorded.')}</p>;
  }
  const processes = new Set(devices.map(({ process_index: index }) => index));
  return (
    <table className="jp-JaxProf-history">
      <thead>
        <tr>
          <th scope="col">{trans.__('Device')}</th>
          <th scope="col">{trans.__('Kind')}</th>
          {processes.size > 1 && <th scope="col">{trans.__('Process')}</th>}
        </tr>
      </thead>
      <tbody>
        {devices.map((device, index) => (
          <tr key={index}>
            <td>
              {(device.platform ?? '').toUpperCase()}{' '}
              {formatCount(device.id ?? index)}
            </td>
            <td>{device.kind}</td>
            {processes.size > 1 && <td>{device.process_index}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The names that are not spelt as their keys are. */
function nameOf(key: string, trans: TranslationBundle): string {
  const names: Record<string, string> = {
    python: 'Python',
    jax: 'JAX',
    jaxlib: 'jaxlib',
    platform: trans.__('Platform'),
    host: trans.__('Host'),
    xla_flags: 'XLA_FLAGS',
    jaxprof: 'jupyterlab-jaxprof',
    x64: 'jax_enable_x64',
    matmul_precision: 'jax_default_matmul_precision',
    cuda: 'CUDA',
    cuda_driver: trans.__('CUDA of the driver'),
    cuda_runtime: trans.__('CUDA runtime'),
    driver: trans.__('GPU driver'),
    cpu: trans.__('CPU backend'),
    gpu: trans.__('GPU backend'),
    tpu: trans.__('TPU backend'),
    nsys: 'Nsight Systems',
    imported: trans.__('Imported from')
  };
  return names[key] ?? key;
}

function versionOf(text: string): string {
  return text
    .replace(/^cuda /, 'CUDA ')
    .replace(
      /\b(\d{2,})0(\d)\d$/,
      (_, major: string, minor: string) => `${major}.${minor}`
    );
}
