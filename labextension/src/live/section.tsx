import type { TranslationBundle } from '@jupyterlab/translation';
import { stopIcon, UseSignal } from '@jupyterlab/ui-components';
import React, { useEffect, useState } from 'react';

import { formatElapsed, formatPercent } from '../format';
import { kindIcon } from '../icons';
import { kindName } from '../sidebar/row';
import type { ITimed, RunningModel } from './model';

const TICK_MS = 1000;

export interface IRunningSectionProps {
  model: RunningModel;
  trans: TranslationBundle;
  /** Interrupt the kernel that measures. */
  stop: (measurement: ITimed) => void;
}

/** What is measured now, with how far it is and a button that stops it; nothing where nothing is. */
export function RunningSection(props: IRunningSectionProps): React.JSX.Element {
  const { model, trans } = props;
  return (
    <UseSignal signal={model.stateChanged}>
      {() =>
        model.measurements.length > 0 ? (
          <ul
            className="jp-JaxProf-running"
            aria-label={trans.__('Running measurements')}
          >
            {model.measurements.map(one => (
              <Measurement key={one.id} measurement={one} {...props} />
            ))}
          </ul>
        ) : null
      }
    </UseSignal>
  );
}

function Measurement(
  props: IRunningSectionProps & { measurement: ITimed }
): React.JSX.Element {
  const { measurement, trans, stop } = props;
  const { kind, name, phase, fraction, began } = measurement;
  const Icon = kindIcon(kind);
  const stopLabel = trans.__('Stop %1 (interrupt its kernel)', name);
  return (
    <li className="jp-JaxProf-measurement">
      <Icon.react tag="span" title={kindName(kind, trans)} />
      <div className="jp-JaxProf-what">
        <div className="jp-JaxProf-nameLine">
          <span className="jp-JaxProf-name" title={measurement.notebook}>
            {name}
          </span>
          <Elapsed began={began} />
        </div>
        {/* A screen reader hears each phase, and not each second. */}
        <div className="jp-JaxProf-meta" role="status">
          <span className="jp-JaxProf-phase" title={phase}>
            {[kindName(kind, trans), phase].filter(Boolean).join(' · ')}
          </span>
        </div>
        {fraction !== null && (
          <progress
            className="jp-JaxProf-progress"
            max={1}
            value={fraction}
            aria-label={formatPercent(fraction * 100)}
          />
        )}
      </div>
      {measurement.kernel_id !== '' && measurement.interruptible && (
        <button
          className="jp-JaxProf-iconButton"
          title={stopLabel}
          aria-label={stopLabel}
          onClick={() => {
            stop(measurement);
          }}
        >
          <stopIcon.react tag="span" />
        </button>
      )}
    </li>
  );
}

/** The time since `began`, counted up each second. */
function Elapsed({ began }: { began: number }): React.JSX.Element {
  return (
    <span className="jp-JaxProf-elapsed" role="timer">
      {formatElapsed(useClock() - began)}
    </span>
  );
}

/** This page's clock in milliseconds, renewed each second while the page is in sight. */
export function useClock(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = window.setInterval(() => {
      if (document.visibilityState === 'visible') {
        setNow(Date.now());
      }
    }, TICK_MS);
    return () => {
      window.clearInterval(timer);
    };
  }, []);
  return now;
}
