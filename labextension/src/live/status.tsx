import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import React from 'react';

import { formatElapsed } from '../format';
import { jaxprofIcon } from '../icons';
import { viewerTitle } from '../viewer/tab';
import type { ITimed, RunningModel } from './model';
import { useClock } from './section';

/** The item of the status bar: the latest measurement, else the viewers that run. A click opens the sidebar. */
export class StatusItem extends ReactWidget {
  constructor(
    private readonly _model: RunningModel,
    private readonly _trans: TranslationBundle,
    private readonly _open: () => void
  ) {
    super();
    this.addClass('jp-JaxProf-statusItem');
  }

  /** Whether there is anything to tell. */
  get isNeeded(): boolean {
    const { measurements, runningViewers } = this._model;
    return measurements.length > 0 || runningViewers.length > 0;
  }

  protected render(): React.JSX.Element {
    return (
      <UseSignal signal={this._model.stateChanged}>
        {() => (
          <button
            className="jp-JaxProf-statusButton"
            title={this._trans.__('Show the captures and what runs')}
            onClick={this._open}
          >
            <jaxprofIcon.react tag="span" />
            <Text model={this._model} trans={this._trans} />
          </button>
        )}
      </UseSignal>
    );
  }
}

function Text(props: {
  model: RunningModel;
  trans: TranslationBundle;
}): React.JSX.Element {
  const { measurements, runningViewers } = props.model;
  const latest = measurements.at(-1);
  if (latest) {
    return <MeasurementText measurement={latest} />;
  }
  const names = runningViewers.map(({ name }) => viewerTitle(name)).join(', ');
  return <span>{props.trans.__('%1 runs', names)}</span>;
}

function MeasurementText(props: { measurement: ITimed }): React.JSX.Element {
  const { name, began } = props.measurement;
  return (
    <span>
      {name} · {formatElapsed(useClock() - began)}
    </span>
  );
}
