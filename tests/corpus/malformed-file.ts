/** A broken log, and what must be seen of it all the same. */
export interface MalformedFile {
  name: string
  bytes: Uint8Array
  /** Ids of entries that must be in the tree. */
  shown: string[]
  /** Whether damage must be reported; undefined where both is right. */
  isReported: boolean | undefined
}
