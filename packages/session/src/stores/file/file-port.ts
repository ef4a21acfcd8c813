/**
 * The system calls of the file store, one method each, so that tests can fail, shorten or model each of them.
 * Writes are synchronous because they only fill the page cache; reads and syncs are asynchronous.
 */
export interface FilePort {
  /** For reading and appending; the file must exist. */
  openAppend(path: string): number
  openRead(path: string): number
  /** Creates a file for writing, mode 0600; fails if the path exists. */
  create(path: string): number
  close(fd: number): void
  /** One write(2); returns the number of bytes written, which may be fewer. */
  write(fd: number, bytes: Uint8Array): number
  size(fd: number): number
  truncate(fd: number, size: number): void
  read(fd: number, bytes: Uint8Array, position: number): Promise<number>
  dataSync(fd: number): Promise<void>
  syncFolder(path: string): Promise<void>
  rename(from: string, to: string): Promise<void>
  /** Creates missing parents too, mode 0700. */
  makeFolder(path: string): void
  /** Names in a folder; empty if it does not exist. */
  names(path: string): string[]
  exists(path: string): boolean
  remove(path: string): void
  /** Resolves when the file may have grown, or the signal aborts. */
  changed(path: string, signal: AbortSignal): Promise<void>
}

/** The calls needed to read an open file. */
export type ReadPort = Pick<FilePort, 'read' | 'size'>
