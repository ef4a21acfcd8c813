/** The package has no types; these are the two functions the writer lock calls. */
declare module 'fs-native-extensions' {
  /** False when another open file holds a lock in the range. Without offset and length the lock covers the whole file. */
  export function tryLock(descriptor: number): boolean
  export function unlock(descriptor: number): void
}
