import type { Cell } from '@jupyterlab/cells';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { MenuSvg, ToolbarButton } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { Menu } from '@lumino/widgets';
import { Widget } from '@lumino/widgets';

import { jaxprofIcon } from '../icons';
import type { IMagic } from './magics';
import { INSERT_COMMAND, REFUSAL_COMMAND } from './magics';

/** A menu with all that can be done to the active cell. */
export function measureMenu(
  commands: CommandRegistry,
  magics: readonly IMagic[]
): Menu {
  const menu = new MenuSvg({ commands });
  menu.addClass('jp-JaxProf-menu');
  menu.addItem({ command: REFUSAL_COMMAND });
  for (const { command } of magics) {
    menu.addItem({ command });
  }
  menu.addItem({ type: 'separator' });
  for (const { inserted } of magics) {
    menu.addItem({ command: INSERT_COMMAND, args: { magic: inserted } });
  }
  return menu;
}

/** A toolbar's button that opens the menu below it. */
export class MenuButton extends ToolbarButton {
  constructor(
    private readonly _menu: Menu,
    trans: TranslationBundle,
    private readonly _beforeOpen: () => void = () => undefined
  ) {
    super({
      icon: jaxprofIcon,
      tooltip: trans.__('Measure this cell with JaxProf'),
      'aria-haspopup': 'menu',
      onClick: () => {
        // A notebook takes the keyboard with each key pressed in it: the menu opens when that is over.
        setTimeout(() => {
          this._open();
        });
      }
    });
    this.addClass('jp-JaxProf-measure');
  }

  private get button(): HTMLElement | null {
    return this.node.querySelector('.jp-ToolbarButtonComponent');
  }

  private _open(): void {
    if (this._menu.isAttached || this.isDisposed) {
      return;
    }
    this._beforeOpen();
    const { left, bottom } = this.node.getBoundingClientRect();
    const { button, _menu: menu } = this;
    const closed = (): void => {
      menu.aboutToClose.disconnect(closed);
      // JupyterLab toggles it with each click.
      this.pressed = false;
      // A command that runs takes the keyboard to the notebook itself.
      button?.focus();
    };
    menu.aboutToClose.connect(closed);
    this.pressed = true;
    menu.open(left, bottom);
  }
}

/** The button in the toolbar of one cell; nothing in that of a text cell. */
export function cellButton(
  cell: Cell,
  menu: Menu,
  notebooks: INotebookTracker,
  trans: TranslationBundle
): Widget {
  if (cell.model.type !== 'code') {
    const nothing = new Widget();
    nothing.hide();
    return nothing;
  }
  return new MenuButton(menu, trans, () => {
    const notebook = notebooks.find(panel =>
      panel.content.widgets.includes(cell)
    )?.content;
    if (notebook) {
      notebook.activeCellIndex = notebook.widgets.indexOf(cell);
    }
  });
}
