import type { LabIcon } from '@jupyterlab/ui-components';
import React from 'react';

export function IconButton(props: {
  icon: LabIcon;
  label: string;
  onClick: () => void;
  pressed?: boolean;
  disabled?: boolean;
}): React.JSX.Element {
  const { icon: Icon, label, onClick, pressed, disabled } = props;
  return (
    <button
      className="jp-JaxProf-iconButton"
      title={label}
      aria-label={label}
      aria-pressed={pressed}
      disabled={disabled}
      onClick={onClick}
    >
      <Icon.react tag="span" />
    </button>
  );
}
