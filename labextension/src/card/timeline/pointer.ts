import { useRef } from 'react';

/** How many pixels a pointer may stray and still click. */
const STRAY_PX = 3;

interface IDragActions {
  /** By which part of the width it was dragged since the last call; to the right is more. */
  onDrag: (fraction: number) => void;
  /** Where the pointer is, with no button held. */
  onHover: (fraction: number, width: number) => void;
  onClick: (fraction: number, width: number) => void;
  onLeave: () => void;
}

/** Tell dragging, hovering and clicking from one another; gives what takes an element's pointer events. */
export function usePointer(
  actions: IDragActions
): (event: React.PointerEvent<HTMLElement>) => void {
  const held = useRef<{ from: number; last: number; far: boolean } | null>(
    null
  );
  return event => {
    const element = event.currentTarget;
    const { left, width } = element.getBoundingClientRect();
    const fraction = (event.clientX - left) / width;
    switch (event.type) {
      case 'pointerdown':
        if (event.button === 0) {
          held.current = {
            from: event.clientX,
            last: event.clientX,
            far: false
          };
          element.setPointerCapture(event.pointerId);
        }
        return;
      case 'pointermove': {
        const drag = held.current;
        if (!drag) {
          actions.onHover(fraction, width);
          return;
        }
        drag.far ||= Math.abs(event.clientX - drag.from) > STRAY_PX;
        if (drag.far) {
          actions.onDrag((event.clientX - drag.last) / width);
          drag.last = event.clientX;
        }
        return;
      }
      case 'pointerup':
        if (held.current && !held.current.far) {
          actions.onClick(fraction, width);
        }
        held.current = null;
        return;
      default:
        held.current = null;
        actions.onLeave();
    }
  };
}
