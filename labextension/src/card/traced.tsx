import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useState } from 'react';

import type {
  ICaptureRecord,
  IDeviceTimes,
  IRecordSteps,
  ISlowStep
} from '../api/record';
import { formatMilliseconds, formatShare } from '../format';
import type { ICardActions } from './actions';
import { useTrans } from './actions';
import { countColumn, shareColumn, timeColumn, textColumn } from './columns';
import { Shares } from './figures';
import { Findings } from './findings';
import { StepFigures } from './steps';
import { Table } from './table';
import { Heading, More, Remark } from './text';
import type { IShown } from './timeline/timeline';
import { Timeline } from './timeline/timeline';
import { TopTables } from './tables';

/** What was found and where the time went: of a trace, of an Nsight report, and of what has a headline only. */
export function Traced(props: {
  record: ICaptureRecord;
  actions: ICardActions;
}): React.JSX.Element {
  const { record, actions } = props;
  const { summary } = record;
  const { timeline } = summary;
  const trans = useTrans();
  const [shown, setShown] = useState<IShown | null>(null);
  const unseen = (timeline?.blind ?? []).map(name => blindName(name, trans));
  return (
    <>
      <Findings
        findings={record.findings}
        onShow={
          timeline?.drawing
            ? ranges => {
                setShown({ ranges });
              }
            : null
        }
        onOpenPattern={actions.openPattern}
      />
      <StepFigures summary={summary} />
      {timeline && <Timeline timeline={timeline} shown={shown} />}
      {timeline?.window && <Remark text={timeline.window} />}
      {unseen.length > 0 && (
        <Remark
          text={trans.__(
            'Not seen by the recorder, so nothing is concluded about it: %1.',
            unseen.join(', ')
          )}
        />
      )}
      {summary.steps && <StepRemarks steps={summary.steps} />}
      {summary.steps && <Parts steps={summary.steps} />}
      <Devices devices={timeline?.devices ?? []} />
      {summary.steps && <Slowest steps={summary.steps} />}
      <TopTables summary={summary} />
      <NsysReport record={record} />
    </>
  );
}

/** How to open the report of Nsight Systems, where there is one. */
function NsysReport(props: {
  record: ICaptureRecord;
}): React.JSX.Element | null {
  const { files, environment } = props.record;
  const trans = useTrans();
  const report = files.find(({ path }) => path.endsWith('.nsys-rep'));
  if (!report) {
    return null;
  }
  const { nsys } = environment;
  const version = typeof nsys === 'string' && /\d{4}\.\d+/.exec(nsys)?.[0];
  return (
    <Remark
      text={
        version
          ? trans.__(
              'To look at every event, download %1 and open it in nsys-ui (version %2 or newer): File, Open.',
              report.path,
              version
            )
          : trans.__(
              'To look at every event, download %1 and open it in nsys-ui: File, Open.',
              report.path
            )
      }
    />
  );
}

/** What each name of `timeline.blind` stands for. */
function blindName(name: string, trans: TranslationBundle): string {
  switch (name) {
    case 'devices':
      return trans.__('the devices');
    case 'compiles':
      return trans.__('compiling');
    case 'host':
      return trans.__('the host’s threads');
    case 'allocator':
      return trans.__('the allocator’s memory');
    case 'graphs':
      return trans.__('the kernels inside CUDA graphs');
    case 'sizes':
      return trans.__('the sizes of copies');
    case 'python':
      return trans.__('Python’s calls');
    default:
      return name;
  }
}

/** What the steps' own times leave out: those of other names, and work that goes on after a marker. */
function StepRemarks(props: { steps: IRecordSteps }): React.JSX.Element {
  const { others, marks_dispatch: dispatch, device_ms: device } = props.steps;
  const trans = useTrans();
  const told = (others ?? []).map(({ name, count, median_ms: median }) =>
    trans.__(
      '%1 × `%2`, median %3',
      count ?? '–',
      name ?? '',
      formatMilliseconds(median)
    )
  );
  return (
    <>
      {told.length > 0 && (
        <Remark
          text={trans.__(
            'Other steps, which the times above are not of: %1.',
            told.join('; ')
          )}
        />
      )}
      {dispatch === null && (
        <Remark
          text={trans.__(
            'No device is in this trace, so whether the step markers wait for their work can’t be told. Where they don’t, the steps’ times are of their dispatch alone: `--steps N` waits.'
          )}
        />
      )}
      {dispatch && (
        <Remark
          text={trans.__(
            'The step markers end before the devices’ work: they work %1 a step. The steps’ times are of their dispatch alone, so neither slow steps nor the parts of a step can be told.',
            formatMilliseconds(device)
          )}
        />
      )}
    </>
  );
}

function Parts(props: { steps: IRecordSteps }): React.JSX.Element | null {
  const { parts } = props.steps;
  const trans = useTrans();
  const spent: [label: string, ms: number, tone: number][] = [
    [trans.__('device computing'), parts?.compute_ms ?? 0, 0],
    [trans.__('copies'), parts?.copy_ms ?? 0, 1],
    [trans.__('collectives'), parts?.collective_ms ?? 0, 3],
    [trans.__('host'), parts?.host_ms ?? 0, 2],
    [trans.__('idle'), parts?.idle_ms ?? 0, 5]
  ];
  const total = spent.reduce((sum, [, ms]) => sum + ms, 0);
  if (total <= 0) {
    return null;
  }
  return (
    <>
      <Heading
        text={trans.__(
          'Where the time of the median step goes (%1)',
          formatMilliseconds(total)
        )}
      />
      <Shares
        shares={spent.map(([label, ms, tone]) => ({
          label,
          value: `${formatMilliseconds(ms)}, ${formatShare(ms / total)}`,
          part: ms,
          tone
        }))}
      />
    </>
  );
}

function Devices(props: { devices: IDeviceTimes[] }): React.JSX.Element | null {
  const { devices } = props;
  const trans = useTrans();
  if (devices.length === 0) {
    return null;
  }
  const kinds = (
    [
      [trans.__('compute'), 'compute_ms'],
      [trans.__('copies'), 'copy_ms'],
      [trans.__('collectives'), 'collective_ms']
    ] as const
  ).filter(([, key]) => devices.some(device => device[key]));
  return (
    <>
      <Heading text={trans.__('Devices')} />
      <Table
        label={trans.__('Devices')}
        rows={devices}
        columns={[
          textColumn<IDeviceTimes>(trans.__('device'), row => row.device),
          shareColumn<IDeviceTimes>(trans.__('busy'), row => row.busy_share),
          timeColumn<IDeviceTimes>(trans.__('busy for'), row => row.busy_ms),
          ...kinds.map(([label, key]) =>
            timeColumn<IDeviceTimes>(label, row => row[key])
          ),
          timeColumn<IDeviceTimes>(trans.__('idle'), row => row.idle_ms),
          countColumn<IDeviceTimes>(trans.__('operations'), row => row.ops)
        ]}
      />
    </>
  );
}

function Slowest(props: { steps: IRecordSteps }): React.JSX.Element | null {
  const slowest = props.steps.slowest ?? [];
  const trans = useTrans();
  if (slowest.length === 0) {
    return null;
  }
  return (
    <More title={trans.__('Slowest steps')}>
      {() => (
        <Table
          label={trans.__('Slowest steps')}
          rows={slowest}
          columns={[
            {
              label: trans.__('step'),
              value: row => row.number,
              text: row => trans.__('step %1', row.number ?? '–')
            },
            timeColumn<ISlowStep>(trans.__('duration'), row => row.duration_ms)
          ]}
          note={row => row.why ?? ''}
        />
      )}
    </More>
  );
}
