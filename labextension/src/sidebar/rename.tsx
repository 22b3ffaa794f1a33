import React, { useEffect, useRef } from 'react';

/** A name being edited in place: Enter and leaving keep it, Escape does not. */
export function RenameInput(props: {
  name: string;
  label: string;
  /** Called once, with the new name or null. */
  onEnd: (name: string | null) => void;
}): React.JSX.Element {
  const { name, label, onEnd } = props;
  const input = useRef<HTMLInputElement>(null);
  const ended = useRef(false);
  const end = (value: string | null): void => {
    if (!ended.current) {
      ended.current = true;
      onEnd(value?.trim() ?? null);
    }
  };
  useEffect(() => {
    input.current?.focus();
    input.current?.select();
  }, []);
  return (
    <input
      ref={input}
      className="jp-JaxProf-rename jp-mod-styled"
      defaultValue={name}
      aria-label={label}
      spellCheck={false}
      onBlur={event => {
        end(event.currentTarget.value);
      }}
      onKeyDown={event => {
        event.stopPropagation();
        // An Enter that only ends a composition (Japanese, say) is not ours.
        if (event.nativeEvent.isComposing) {
          return;
        }
        if (event.key === 'Enter') {
          end(event.currentTarget.value);
        } else if (event.key === 'Escape') {
          end(null);
        }
      }}
      onMouseDown={event => {
        event.stopPropagation();
      }}
      onDoubleClick={event => {
        event.stopPropagation();
      }}
    />
  );
}
