import React from 'react';

/** A path on one line; where it is too long its beginning is left out, which tells less than its end. */
export function Path(props: { path: string }): React.JSX.Element {
  return (
    <span className="jp-JaxProf-path" title={props.path}>
      <bdi>{props.path}</bdi>
    </span>
  );
}
