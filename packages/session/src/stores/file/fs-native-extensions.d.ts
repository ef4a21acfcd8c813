/** The package has no types; the writer lock uses these functions. */
declare module 'fs-native-extensions' {
  /** False when another open file holds a lock in the range. Without offset and length the lock covers the whole file. */
  export function tryLock(descriptor: number): boolean
  export function unlock(descriptor: number): void
}
