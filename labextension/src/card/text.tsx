import React, { useState } from 'react';

/** A sentence; what stands in it between a pair of backticks is code. */
export function Sentence(props: { text: string }): React.JSX.Element {
  const parts = props.text.split('`');
  if (parts.length % 2 === 0) {
    return <>{props.text}</>; // one backtick without its other
  }
  return (
    <>
      {parts.map((part, index) =>
        index % 2 ? <code key={index}>{part}</code> : part
      )}
    </>
  );
}

export function Heading(props: { text: string }): React.JSX.Element | null {
  return props.text ? <p className="jx-heading">{props.text}</p> : null;
}

export function Remark(props: { text: string }): React.JSX.Element {
  return (
    <p className="jx-remark">
      <Sentence text={props.text} />
    </p>
  );
}

/** What is out of the way until it is opened, and is not even made before. */
export function More(props: {
  title: string;
  children: () => React.ReactNode;
}): React.JSX.Element {
  const [open, setOpen] = useState(false);
  return (
    <details
      className="jx-more"
      open={open}
      onToggle={event => {
        setOpen(event.currentTarget.open);
      }}
    >
      <summary>{props.title}</summary>
      {open && props.children()}
    </details>
  );
}
