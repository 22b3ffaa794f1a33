const KEEP = 'data-lm-suppress-shortcuts';

/**
 * Leave the keys to a card that has the keyboard: a notebook in command mode takes Enter, arrows and plus for itself.
 *
 * Keys with Ctrl or Command go to JupyterLab as ever. Its listener is the document's first, so the mark that it obeys
 * must stand before.
 */
export function keepKeys(): void {
  window.addEventListener(
    'keydown',
    event => {
      const card =
        event.target instanceof Element &&
        event.target.closest('.jaxprof-card');
      if (card) {
        const keeps = !event.ctrlKey && !event.metaKey;
        card.toggleAttribute(KEEP, keeps);
      }
    },
    true
  );
}
