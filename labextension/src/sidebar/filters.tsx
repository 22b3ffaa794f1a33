import type { TranslationBundle } from '@jupyterlab/translation';
import { HTMLSelect, InputGroup } from '@jupyterlab/ui-components';
import { Debouncer } from '@lumino/polling';
import React, { useEffect, useMemo, useState } from 'react';

import type { ICaptureQuery } from '../api/types';
import { baseName } from '../format';
import { kindName } from './row';

const SEARCH_MS = 250;

export interface IFiltersProps {
  query: ICaptureQuery;
  kinds: readonly string[];
  notebooks: readonly string[];
  onChange: (changes: Partial<ICaptureQuery>) => void;
  trans: TranslationBundle;
}

/** A search field, and the kinds and notebooks to choose from. */
export function Filters(props: IFiltersProps): React.JSX.Element {
  const { query, kinds, notebooks, onChange, trans } = props;
  return (
    <div className="jp-JaxProf-filters" role="search">
      <SearchField
        text={query.text}
        label={trans.__('Search captures')}
        onChange={text => {
          onChange({ text });
        }}
      />
      <div className="jp-JaxProf-selects">
        <Choice
          label={trans.__('Kind')}
          all={trans.__('All kinds')}
          value={query.kind}
          values={kinds}
          nameOf={kind => kindName(kind, trans)}
          onChange={kind => {
            onChange({ kind });
          }}
        />
        <Choice
          label={trans.__('Notebook')}
          all={trans.__('All notebooks')}
          value={query.notebook}
          values={notebooks}
          nameOf={baseName}
          onChange={notebook => {
            onChange({ notebook });
          }}
        />
      </div>
    </div>
  );
}

/** A search field that speaks when somebody has stopped typing. */
function SearchField(props: {
  text: string;
  label: string;
  onChange: (text: string) => void;
}): React.JSX.Element {
  const { text, label, onChange } = props;
  const [value, setValue] = useState(text);
  useEffect(() => {
    setValue(text);
  }, [text]);
  const debouncer = useMemo(
    () =>
      new Debouncer<void, void, [string, (text: string) => void]>(
        (latest, tell) => {
          tell(latest);
        },
        SEARCH_MS
      ),
    []
  );
  useEffect(
    () => () => {
      debouncer.dispose();
    },
    [debouncer]
  );
  return (
    <InputGroup
      className="jp-JaxProf-search"
      type="search"
      rightIcon="ui-components:search"
      placeholder={label}
      aria-label={label}
      spellCheck={false}
      value={value}
      onChange={event => {
        setValue(event.target.value);
        void debouncer.invoke(event.target.value, onChange);
      }}
      onKeyDown={event => {
        if (event.key === 'Escape' && value) {
          event.stopPropagation();
          setValue('');
          void debouncer.invoke('', onChange);
        }
      }}
    />
  );
}

function Choice(props: {
  label: string;
  all: string;
  value: string;
  values: readonly string[];
  nameOf: (value: string) => string;
  onChange: (value: string) => void;
}): React.JSX.Element {
  const { label, all, value, values, nameOf, onChange } = props;
  // A choice stays to be seen, and undone, when nothing of it is left.
  const shown = value && !values.includes(value) ? [...values, value] : values;
  return (
    <HTMLSelect
      className="jp-JaxProf-select"
      iconProps={{ top: '6px' }}
      aria-label={label}
      title={value || label}
      value={value}
      onChange={event => {
        onChange(event.target.value);
      }}
    >
      <option value="">{all}</option>
      {shown.map(item => (
        <option key={item} value={item}>
          {nameOf(item)}
        </option>
      ))}
    </HTMLSelect>
  );
}
