import type { ISessionContext } from '@jupyterlab/apputils';
import type { Cell } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { NotebookActions } from '@jupyterlab/notebook';
import type { Kernel, Session } from '@jupyterlab/services';
import type { ITranslator } from '@jupyterlab/translation';

import { withLine } from '../magics';

/** Tells the kernel that the first line is none of the cell's own (`cell/notebook.py`). */
const ADDED_LINE = 'jaxprof_added_line';

/** The cells that ran under a magic which their text doesn't have. */
export const measuredCells = new WeakSet<Cell>();

/**
 * Run a notebook's active cell under a magic, without changing its text. All is done as JupyterLab runs a cell
 * (its executor, signals, prompts and timings); only the code that is sent has the magic's line.
 *
 * Gives false if the cell was run by something else than the kernel's connection of this page, so without it.
 */
export async function runUnder(
  panel: NotebookPanel,
  line: string,
  dialogs: ISessionContext.IDialogs | undefined,
  translator: ITranslator
): Promise<boolean> {
  const { content, sessionContext } = panel;
  const cell = content.activeCell;
  if (!cell) {
    return true;
  }
  const sent: string[] = [];
  const send = (code: string): string => {
    sent.push(code);
    return withLine(code, line);
  };
  measuredCells.add(cell);
  content.deselectAll();
  const ran = await NotebookActions.runCells(
    content,
    [cell],
    sending(sessionContext, send),
    dialogs,
    translator
  );
  return sent.length > 0 || !ran;
}

/** Give a session context whose kernel is sent other code. */
function sending(
  context: ISessionContext,
  change: (code: string) => string
): ISessionContext {
  return over<ISessionContext>(context, {
    get session(): Session.ISessionConnection | null {
      const { session } = context;
      return session && withKernel(session, change);
    }
  });
}

function withKernel(
  session: Session.ISessionConnection,
  change: (code: string) => string
): Session.ISessionConnection {
  return over<Session.ISessionConnection>(session, {
    get kernel(): Kernel.IKernelConnection | null {
      const { kernel } = session;
      return kernel && withExecute(kernel, change);
    }
  });
}

function withExecute(
  kernel: Kernel.IKernelConnection,
  change: (code: string) => string
): Kernel.IKernelConnection {
  return over<Kernel.IKernelConnection>(kernel, {
    requestExecute: (content, disposeOnDone, metadata) => {
      const code = change(content.code);
      // A line that took another's place is where the cell's text has that one.
      const isAdded = code.endsWith(`\n${content.code}`);
      return kernel.requestExecute({ ...content, code }, disposeOnDone, {
        ...metadata,
        ...(isAdded ? { [ADDED_LINE]: true } : {})
      });
    }
  });
}

/** Give `target` with some members in place of its own. */
function over<T extends object>(target: T, members: Partial<T>): T {
  return new Proxy(target, {
    get: (_, key): unknown => {
      if (key in members) {
        return Reflect.get(members, key);
      }
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function'
        ? (value as () => unknown).bind(target)
        : value;
    }
  });
}
