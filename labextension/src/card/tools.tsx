import type { TranslationBundle } from '@jupyterlab/translation';
import { caretDownIcon } from '@jupyterlab/ui-components';
import { CommandRegistry } from '@lumino/commands';
import { Menu } from '@lumino/widgets';
import React from 'react';

import type { ICardActions } from './actions';
import { useTrans } from './actions';

/** The tool that a click opens. */
const FIRST = 'trace_viewer@';

/** XProf's tools for one run, with the names that XProf gives them. */
function toolsOf(trans: TranslationBundle): [tool: string, label: string][] {
  return [
    [FIRST, trans.__('Trace Viewer')],
    ['overview_page', trans.__('Overview Page')],
    ['kernel_stats', trans.__('GPU Kernel Stats')],
    ['hlo_stats', trans.__('HLO Op Stats')],
    ['op_profile', trans.__('HLO Op Profile')],
    ['roofline_model', trans.__('Roofline Model')],
    ['memory_profile', trans.__('Memory Profile')],
    ['memory_viewer', trans.__('Memory Viewer')],
    ['graph_viewer', trans.__('Graph Viewer')],
    ['framework_op_stats', trans.__('Framework Op Stats')]
  ];
}

/** A link to the run in XProf, and a menu of XProf's other tools. */
export function XprofMenu(props: {
  run: string;
  actions: ICardActions;
}): React.JSX.Element {
  const { run, actions } = props;
  const trans = useTrans();
  return (
    <span className="jx-split">
      <a
        className="jx-button"
        href={actions.xprofUrl({ run, tool: FIRST })}
        target="_blank"
        rel="noopener noreferrer"
        onClick={event => {
          // With a modifier the browser does what it always does.
          if (
            !event.ctrlKey &&
            !event.metaKey &&
            !event.shiftKey &&
            !event.altKey
          ) {
            event.preventDefault();
            actions.openXprof({ run, tool: FIRST });
          }
        }}
      >
        {trans.__('Open in XProf')}
      </a>
      <button
        className="jx-button jx-caret"
        title={trans.__('A tool of XProf')}
        aria-label={trans.__('A tool of XProf')}
        aria-haspopup="menu"
        onClick={event => {
          openMenu(event.currentTarget, run, actions, trans);
        }}
      >
        <caretDownIcon.react tag="span" />
      </button>
    </span>
  );
}

/** Open a menu of JupyterLab's own kind below the button. */
function openMenu(
  button: HTMLElement,
  run: string,
  actions: ICardActions,
  trans: TranslationBundle
): void {
  const commands = new CommandRegistry();
  const menu = new Menu({ commands });
  for (const [tool, label] of toolsOf(trans)) {
    commands.addCommand(tool, {
      label,
      execute: () => {
        actions.openXprof({ run, tool });
      }
    });
    menu.addItem({ command: tool });
  }
  menu.aboutToClose.connect(() => {
    // What was chosen is run after this.
    requestAnimationFrame(() => {
      menu.dispose();
    });
    button.focus();
  });
  const { left, bottom } = button.getBoundingClientRect();
  menu.open(left, bottom);
}
