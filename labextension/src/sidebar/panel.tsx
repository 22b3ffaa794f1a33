import type { TranslationBundle } from '@jupyterlab/translation';
import {
  fileUploadIcon,
  infoIcon,
  ReactWidget,
  refreshIcon,
  UseSignal
} from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import React, { useEffect, useState } from 'react';

import { jaxprofIcon } from '../icons';
import type { ICapturesSidebar } from '../tokens';
import { VERSION } from '../version';
import type { Actions } from './actions';
import { Details } from './details';
import { Filters } from './filters';
import { Footer } from './footer';
import { CaptureList } from './list';
import type { CapturesModel } from './model';
import { ProblemView, wordsOf } from './problem';
import { EmptyState, EXAMPLE_LINE, Loading, NothingFound } from './states';

const AGE_MS = 30_000;

export interface IPanelOptions {
  model: CapturesModel;
  actions: Actions;
  trans: TranslationBundle;
  /** Open XProf at no run in particular. */
  openXprof: () => void;
  /** Choose a file to import. */
  importFile: () => void;
  /** Tell what is amiss in the server's environment. */
  checkInstallation: () => void;
  /** Put a line above the active cell's code; null when no notebook is active. */
  insertLine: () => ((line: string) => void) | null;
}

/** The sidebar 'JaxProf'. */
export class CapturesPanel extends ReactWidget implements ICapturesSidebar {
  constructor(private readonly _options: IPanelOptions) {
    super();
    this.id = 'jaxprof-captures';
    this.addClass('jp-JaxProf-panel');
    this.title.icon = jaxprofIcon;
    this.title.caption = _options.trans.__('JaxProf');
    this.node.tabIndex = -1;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', _options.trans.__('JaxProf'));
  }

  get model(): CapturesModel {
    return this._options.model;
  }

  get actions(): Actions {
    return this._options.actions;
  }

  addSection(section: React.ComponentType): void {
    this._sections.push(section);
    this.update();
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._look();
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    document.addEventListener('visibilitychange', this._look);
    this._look();
  }

  protected override onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this._look();
  }

  protected override onBeforeDetach(msg: Message): void {
    document.removeEventListener('visibilitychange', this._look);
    this._options.model.isVisible = false;
    super.onBeforeDetach(msg);
  }

  protected override onActivateRequest(): void {
    const { model } = this._options;
    if (model.selected) {
      model.focusSelected();
    } else {
      const list = this.node.querySelector<HTMLElement>('[role=grid]');
      (list ?? this.node).focus();
    }
  }

  protected render(): React.JSX.Element {
    return (
      <UseSignal signal={this._options.model.stateChanged}>
        {() => <Panel {...this._options} sections={this._sections} />}
      </UseSignal>
    );
  }

  private readonly _sections: React.ComponentType[] = [];

  private readonly _look = (): void => {
    this._options.model.isVisible =
      this.isVisible && document.visibilityState === 'visible';
  };
}

function Panel(
  props: IPanelOptions & { sections: readonly React.ComponentType[] }
): React.JSX.Element {
  const { model, actions, trans, openXprof, importFile, sections } = props;
  const { checkInstallation } = props;
  const now = useNow(model.isVisible);
  const selected = model.selected;
  return (
    <>
      <div className="jp-JaxProf-header">
        <h2>{trans.__('Captures')}</h2>
        <button
          className="jp-JaxProf-iconButton"
          title={trans.__('Open XProf')}
          aria-label={trans.__('Open XProf')}
          onClick={openXprof}
        >
          <jaxprofIcon.react tag="span" />
        </button>
        <button
          className="jp-JaxProf-iconButton"
          title={trans.__('Import a trace or report')}
          aria-label={trans.__('Import a trace or report')}
          onClick={importFile}
        >
          <fileUploadIcon.react tag="span" />
        </button>
        <button
          className="jp-JaxProf-iconButton"
          title={trans.__('Check the installation')}
          aria-label={trans.__('Check the installation')}
          onClick={checkInstallation}
        >
          <infoIcon.react tag="span" />
        </button>
        <button
          className="jp-JaxProf-iconButton"
          title={trans.__('Refresh')}
          aria-label={trans.__('Refresh')}
          onClick={() => {
            void model.reload();
          }}
        >
          <refreshIcon.react tag="span" />
        </button>
      </div>
      {sections.map((Section, index) => (
        <Section key={index} />
      ))}
      <Body {...props} now={now} />
      {model.detailsOpen && selected && (
        <Details row={selected} actions={actions} trans={trans} />
      )}
      {model.totals && (
        <Footer
          totals={model.totals}
          filtered={model.isFiltered}
          storePath={model.server.status?.store.path ?? ''}
          trans={trans}
          onDeleteOldest={over => {
            void actions.deleteOldest(over);
          }}
          onCopyPath={path => {
            actions.copy(path, trans.__('Path copied'));
          }}
        />
      )}
      <div className="jp-JaxProf-announcer" role="status" aria-live="polite">
        {model.announcement}
      </div>
    </>
  );
}

function Body(props: IPanelOptions & { now: Date }): React.JSX.Element {
  const { model, trans } = props;
  const problem = model.server.problem;
  const totals = model.totals;
  // What is loaded stays useful while one answer has failed.
  const isPassing = problem?.kind === 'failed' || problem?.kind === 'foreign';
  if (problem && !(isPassing && totals)) {
    const retry = (): void => {
      void model.reload();
    };
    return <ProblemView problem={problem} onRetry={retry} trans={trans} />;
  }
  if (!totals) {
    return <Loading trans={trans} />;
  }
  return (
    <>
      <Warnings model={model} trans={trans} />
      {(totals.total > 0 || model.isFiltered) && (
        <Filters
          query={model.query}
          kinds={totals.kinds}
          notebooks={totals.notebooks}
          trans={trans}
          onChange={changes => {
            void model.filter(changes);
          }}
        />
      )}
      <Captures {...props} />
    </>
  );
}

/** The list, or why there is nothing in it. */
function Captures(props: IPanelOptions & { now: Date }): React.JSX.Element {
  const { model, actions, trans, insertLine, now } = props;
  if (model.rows.length > 0) {
    return (
      <CaptureList
        key={JSON.stringify(model.query)}
        model={model}
        actions={actions}
        now={now}
        trans={trans}
      />
    );
  }
  if (model.isFiltered) {
    const clear = (): void => {
      void model.clearFilters();
    };
    return <NothingFound trans={trans} onClear={clear} />;
  }
  const insert = insertLine();
  return (
    <EmptyState
      trans={trans}
      onCopy={() => {
        actions.copy(`${EXAMPLE_LINE}\n`, trans.__('Copied'));
      }}
      onInsert={
        insert &&
        (() => {
          insert(EXAMPLE_LINE);
        })
      }
    />
  );
}

/** What is wrong but leaves the list usable. */
function Warnings(props: {
  model: CapturesModel;
  trans: TranslationBundle;
}): React.JSX.Element {
  const { model, trans } = props;
  const other = model.server.otherVersion;
  const problems = new Set(model.totals?.problems);
  const { problem } = model.server;
  if (problem) {
    problems.add(trans.__('The list may be old: %1', wordsOf(problem, trans)));
  }
  const store = model.server.status?.store.problem;
  if (store) {
    problems.add(store);
  }
  if (other !== null) {
    problems.add(
      trans.__(
        'The server runs jupyterlab-jaxprof %1, this page has %2: run “pip install -U jupyterlab-jaxprof”, restart the server and reload this page.',
        other,
        VERSION
      )
    );
  }
  return (
    <>
      {[...problems].map(text => (
        <p key={text} className="jp-JaxProf-warning" role="alert">
          {text}
        </p>
      ))}
    </>
  );
}

/** The time now, renewed now and then while somebody looks. */
function useNow(active: boolean): Date {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    if (!active) {
      return;
    }
    const update = (): void => {
      setNow(new Date());
    };
    update();
    const timer = window.setInterval(update, AGE_MS);
    return () => {
      window.clearInterval(timer);
    };
  }, [active]);
  return now;
}
