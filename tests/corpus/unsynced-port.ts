import { nodeFilePort, type FilePort } from '@tapetree/session/stores/file'

/** Real files, without waiting for the disk: for proofs about reading, where thousands of files are opened for writing. */
export function unsyncedPort(): FilePort {
  return { ...nodeFilePort(), dataSync: async () => undefined, syncFolder: async () => undefined }
}
