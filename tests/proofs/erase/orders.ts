/** What a worker of the proof `erase` is told. */
export interface Order {
  folder: string
  seed: number
  operations: number
  /** The system call of an erase, counted over all erases of the worker, at which it kills itself. */
  dieAtCall: number
}

/** What a worker reports, before and after it acts. One line of JSON each. */
export type Report =
  | { type: 'made'; id: string; canary: string }
  | { type: 'copying'; from: string }
  | { type: 'copied'; id: string; from: string }
  | { type: 'erasing'; id: string; parent?: string }
  | { type: 'erased'; id: string; forks: string[] }
  | { type: 'refused'; id: string; code: string }
  | { type: 'done' }
