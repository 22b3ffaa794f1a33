import React from 'react';

/** A name and its value; one whose value is empty is not shown. */
export type Fact = [string, React.ReactNode];

/** Facts, a line each; and what follows them in the same list. */
export function FactList(props: {
  facts: Fact[];
  children?: React.ReactNode;
}): React.JSX.Element {
  return (
    <dl className="jp-JaxProf-facts">
      {props.facts
        .filter(([, value]) => value !== '')
        .map(([name, value]) => (
          <React.Fragment key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </React.Fragment>
        ))}
      {props.children}
    </dl>
  );
}

/** When a capture was made, in the reader's own time and language. */
export function formatCreated(created: string): string {
  return new Date(created).toLocaleString(undefined, {
    dateStyle: 'medium',
    timeStyle: 'medium'
  });
}

/** A value of an environment, of whose form a record promises nothing. */
export function told(value: unknown): string {
  return value === null || value === undefined
    ? ''
    : typeof value === 'string'
      ? value
      : JSON.stringify(value);
}
