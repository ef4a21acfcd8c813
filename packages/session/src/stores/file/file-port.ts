/**
 * The system calls that the file store makes, one method each, so that tests can fail, cut or model every one of them. Writing
 * is synchronous (it only fills the page cache), reading and syncing are not.
 */
export interface FilePort {
  /** For reading and appending; the file must exist. */
  openAppend(path: string): number
  openRead(path: string): number
  /** A new file for writing, mode 0600; fails if anything is there. */
  create(path: string): number
  close(fd: number): void
  /** One write(2); gives the number of bytes that were taken, which may be fewer. */
  write(fd: number, bytes: Uint8Array): number
  size(fd: number): number
  truncate(fd: number, size: number): void
  read(fd: number, bytes: Uint8Array, position: number): Promise<number>
  dataSync(fd: number): Promise<void>
  syncFolder(path: string): Promise<void>
  rename(from: string, to: string): Promise<void>
  /** With all folders above it, mode 0700. */
  makeFolder(path: string): void
  /** Names in a folder; none where it does not exist. */
  names(path: string): string[]
  exists(path: string): boolean
  remove(path: string): void
  /** Resolves when the file may have grown, or the signal aborts. */
  changed(path: string, signal: AbortSignal): Promise<void>
}

/** What it takes to read a file that is open. */
export type ReadPort = Pick<FilePort, 'read' | 'size'>
