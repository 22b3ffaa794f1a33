import type { TranslationBundle } from '@jupyterlab/translation';
import type { LabIcon } from '@jupyterlab/ui-components';

import { nsysIcon, sweepIcon, timeIcon, traceIcon } from '../icons';

export const INSERT_COMMAND = 'jaxprof:insert-magic';
/** Does nothing: its label says in a menu why the others can't be chosen. */
export const REFUSAL_COMMAND = 'jaxprof:run-refusal';

/** A magic that a cell can be run under. */
export interface IMagic {
  /** The command that runs the active cell under it. */
  command: string;
  /** The line that a run sends. */
  line: string;
  /** The line that is written into a cell's text. */
  inserted: string;
  label: string;
  caption: string;
  icon: LabIcon;
  /** Whether it needs values, which are asked for. */
  asks: boolean;
}

export function magicsOf(trans: TranslationBundle): readonly IMagic[] {
  return [
    {
      command: 'jaxprof:time-cell',
      line: '%%jaxtime',
      inserted: '%%jaxtime',
      label: trans.__('Time this Cell'),
      caption: trans.__(
        'Run the cell under %%jaxtime: how long it takes, and how much of that is compiling'
      ),
      icon: timeIcon,
      asks: false
    },
    {
      command: 'jaxprof:trace-cell',
      line: '%%jaxtrace',
      inserted: '%%jaxtrace',
      label: trans.__('Trace this Cell'),
      caption: trans.__(
        'Run the cell under %%jaxtrace: what costs time in it, with a trace for XProf'
      ),
      icon: traceIcon,
      asks: false
    },
    {
      command: 'jaxprof:nsys-cell',
      // Another extension may have the name nsys.
      line: '%%jaxnsys',
      inserted: '%%nsys',
      label: trans.__('Run this Cell under Nsight'),
      caption: trans.__(
        'Run the cell under %%nsys: Nsight Systems records it in a process of its own'
      ),
      icon: nsysIcon,
      asks: false
    },
    {
      command: 'jaxprof:sweep-cell',
      line: '%%jaxsweep',
      inserted: '%%jaxsweep',
      label: trans.__('Sweep this Cell…'),
      caption: trans.__(
        'Run the cell under %%jaxsweep: once for each value of a name, such as batch=8,32,128'
      ),
      icon: sweepIcon,
      asks: true
    }
  ];
}
