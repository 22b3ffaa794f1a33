import { MainAreaWidget } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import {
  addIcon,
  refreshIcon,
  Toolbar,
  ToolbarButton
} from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';

import type { Client } from '../api/client';
import type { ViewerName } from '../api/types';
import { browserTabIcon, jaxprofIcon } from '../icons';
import type { ViewerContent } from './content';

export interface ITabOptions {
  content: ViewerContent;
  client: Client;
  /** Open the same run in one more tab. */
  openAnother: () => void;
  trans: TranslationBundle;
}

/** A viewer's tab in the main area, named like the capture that it shows. */
export class ViewerTab extends MainAreaWidget<ViewerContent> {
  constructor(options: ITabOptions) {
    super({ content: options.content });
    this.addClass('jp-JaxProf-tab');
    this.title.icon = jaxprofIcon;
    this.title.closable = true;
    this._client = options.client;
    this._trans = options.trans;
    this._addTools(options);
    this.content.targetChanged.connect(this._describe, this);
    this._describe();
  }

  private _addTools({ openAnother, trans }: ITabOptions): void {
    const tools: [string, Widget][] = [
      [
        'reload',
        new ToolbarButton({
          icon: refreshIcon,
          tooltip: trans.__('Reload'),
          onClick: () => void this.content.reload()
        })
      ],
      [
        'another',
        new ToolbarButton({
          icon: addIcon,
          tooltip: trans.__('Open another tab of this run'),
          onClick: openAnother
        })
      ],
      ['name', this._name],
      ['spacer', Toolbar.createSpacerItem()],
      [
        'browser',
        new ToolbarButton({
          icon: browserTabIcon,
          tooltip: trans.__('Open in a new browser tab'),
          onClick: () => {
            window.open(this.content.url, '_blank', 'noopener');
          }
        })
      ]
    ];
    this._name.addClass('jp-JaxProf-tabName');
    for (const [name, widget] of tools) {
      this.toolbar.addItem(name, widget);
    }
  }

  /** Name the tab; the capture's name replaces the run's when the server tells it. */
  private _describe(): void {
    const { run, tool } = this.content.target;
    const viewer = viewerTitle(this.content.viewer);
    this._setTitle(run ? (run.split('/').pop() ?? run) : viewer, run, tool);
    const id = run.split('/')[0];
    if (id) {
      this._client.capture(id, { background: true }).then(
        ({ name }) => {
          if (!this.isDisposed && this.content.target.run === run) {
            this._setTitle(name, run, this.content.target.tool);
          }
        },
        () => {
          // Deleted, or unreadable: the run's own name stays.
        }
      );
    }
  }

  private _setTitle(name: string, run: string, tool: string): void {
    const viewer = viewerTitle(this.content.viewer);
    this.title.label = name;
    this.title.caption = [viewer, run && this._trans.__('Run: %1', run), tool]
      .filter(Boolean)
      .join('\n');
    this._name.node.textContent = run;
    this._name.node.title = run;
  }

  private readonly _client: Client;
  private readonly _trans: TranslationBundle;
  private readonly _name = new Widget();
}

export function viewerTitle(viewer: ViewerName): string {
  return viewer === 'xprof' ? 'XProf' : 'TensorBoard';
}
