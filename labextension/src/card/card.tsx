import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useEffect, useRef, useState } from 'react';

import type { ICaptureRecord } from '../api/record';
import type { ICardActions } from './actions';
import type { Answer, StoredStates } from './stored';
import { CaptureView } from './view';

export interface ICardProps {
  record: ICaptureRecord;
  actions: ICardActions;
  states: StoredStates;
  trans: TranslationBundle;
}

/** A capture's card in a notebook. The store is asked of it when it comes into sight. */
export function Card(props: ICardProps): React.JSX.Element {
  const { record, states, trans } = props;
  const [answer, setAnswer] = useState<Answer | null>(null);
  const element = useRef<HTMLDivElement>(null);
  const { id } = record;
  const outside = record.in_store === false;
  const seen = useSeen(element);
  useEffect(() => {
    setAnswer(null);
    if (!seen || outside) {
      return;
    }
    const watching = states.watch(id, setAnswer);
    return () => {
      watching.dispose();
    };
  }, [states, id, seen, outside]);
  const lost = outside
    ? trans.__('This capture was kept outside the store.')
    : (answer?.lost ?? '');
  const stored = { name: record.name, pinned: record.pinned, ...answer, lost };
  return (
    <div ref={element}>
      <CaptureView {...props} stored={stored} />
    </div>
  );
}

/** Whether it has been in sight. */
function useSeen(element: React.RefObject<HTMLElement>): boolean {
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    if (seen || !element.current) {
      return;
    }
    const observer = new IntersectionObserver(entries => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) {
        setSeen(true);
      }
    });
    observer.observe(element.current);
    return () => {
      observer.disconnect();
    };
  }, [element, seen]);
  return seen;
}

interface IBoundaryProps {
  onError: () => void;
  children: React.ReactNode;
}

/** Tells when a part of a card can't be shown: of a record that is not as it should be. */
export class Boundary extends React.Component<
  IBoundaryProps,
  { failed: boolean }
> {
  override state = { failed: false };

  static getDerivedStateFromError(): { failed: boolean } {
    return { failed: true };
  }

  override componentDidCatch(): void {
    this.props.onError();
  }

  override render(): React.ReactNode {
    return this.state.failed ? null : this.props.children;
  }
}
