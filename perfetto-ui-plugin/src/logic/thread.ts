// The name of a thread.

import {type Row, text} from './rows';

/** Returns the name and the number of the thread of a row; null if neither is known. */
export function thread(row: Row, comm = 'comm', tid = 'tid'): string | null {
  const parts = [text(row[comm]), text(row[tid])].filter((part) => part !== null);
  return parts.length ? parts.join(' ') : null;
}
