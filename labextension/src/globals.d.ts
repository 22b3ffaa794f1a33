declare module '*/package.json' {
  export const version: string;
}

// What is used of React's DOM half, whose types come in a package of their own.
declare module 'react-dom' {
  export function flushSync(action: () => void): void;
}

declare module 'react-dom/client' {
  import type { ReactNode } from 'react';

  export interface Root {
    render(element: ReactNode): void;
    unmount(): void;
  }
  export function createRoot(container: Element): Root;
}
