import type { TranslationBundle } from '@jupyterlab/translation';
import { closeIcon, UseSignal } from '@jupyterlab/ui-components';
import React from 'react';

import type { IImport, ImportsModel } from './model';

export interface IImportsSectionProps {
  model: ImportsModel;
  trans: TranslationBundle;
  /** Show a capture in the list. */
  reveal: (id: string) => void;
}

/** The imports that go on, and those that failed until they are dismissed. */
export function ImportsSection(props: IImportsSectionProps): React.JSX.Element {
  const { model, trans } = props;
  return (
    <UseSignal signal={model.stateChanged}>
      {() =>
        model.imports.length > 0 ? (
          <ul className="jp-JaxProf-imports" aria-label={trans.__('Imports')}>
            {model.failed.length > 1 && (
              <li className="jp-JaxProf-dismissAll">
                <button
                  className="jp-JaxProf-linkButton"
                  onClick={() => {
                    model.failed.forEach(one => {
                      model.cancel(one);
                    });
                  }}
                >
                  {trans.__('Dismiss all %1', model.failed.length)}
                </button>
              </li>
            )}
            {model.imports.map(one => (
              <Import key={one.key} one={one} {...props} />
            ))}
          </ul>
        ) : null
      }
    </UseSignal>
  );
}

function Import(
  props: IImportsSectionProps & { one: IImport }
): React.JSX.Element {
  const { one, model, trans, reveal } = props;
  const failed = one.state === 'failed';
  const label = failed
    ? trans.__('Dismiss')
    : trans.__('Cancel the import of %1', one.title);
  const { existing } = one;
  return (
    <li className={failed ? 'jp-mod-failed' : ''}>
      <div className="jp-JaxProf-what">
        <div className="jp-JaxProf-name" title={one.title}>
          {one.title}
        </div>
        {failed ? (
          <p role="alert">{one.message}</p>
        ) : (
          <Work one={one} trans={trans} />
        )}
        {existing !== null && (
          <button
            className="jp-JaxProf-button"
            onClick={() => {
              model.cancel(one);
              reveal(existing);
            }}
          >
            {trans.__('Show it')}
          </button>
        )}
      </div>
      <button
        className="jp-JaxProf-iconButton"
        title={label}
        aria-label={label}
        onClick={() => {
          model.cancel(one);
        }}
      >
        <closeIcon.react tag="span" />
      </button>
    </li>
  );
}

function Work(props: {
  one: IImport;
  trans: TranslationBundle;
}): React.JSX.Element {
  const { one, trans } = props;
  const text =
    one.state === 'reading' ? trans.__('Reading…') : trans.__('Uploading…');
  const done = one.fraction === null ? {} : { value: one.fraction };
  return (
    <>
      <div className="jp-JaxProf-meta">{text}</div>
      <progress
        className="jp-JaxProf-progress"
        max={1}
        {...done}
        aria-label={text}
      />
    </>
  );
}
