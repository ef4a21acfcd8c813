import { basename, dirname, join } from 'node:path'
import type { DerivedData } from '../../log/log-store.ts'

/** Paths of the files of one session. */
export interface LogPaths {
  folder: string
  log: string
  lock: string
  owner: string
  blobs: string
  derived: Record<keyof DerivedData, string>
  /** Folder of the pieces of the checkpoint after the first. */
  pieces: string
  /** Folder of drafts and spools. */
  local: string | undefined
}

export const logName = 'events.jsonl'

/** A session in a store has its own folder. */
export function pathsInFolder(folder: string): LogPaths {
  return {
    folder,
    log: join(folder, logName),
    lock: join(folder, 'lock'),
    owner: join(folder, 'owner.json'),
    blobs: join(folder, 'blobs'),
    derived: {
      checkpoint: join(folder, 'checkpoint.json'),
      metadata: join(folder, 'metadata.json'),
      queue: join(folder, 'queue.json'),
    },
    pieces: join(folder, 'checkpoint'),
    local: folder,
  }
}

/** A log outside a store: its files lie beside it, under its name. */
export function pathsBesideFile(log: string): LogPaths {
  const beside = (ending: string): string => join(dirname(log), `.${basename(log)}.${ending}`)
  return {
    folder: dirname(log),
    log,
    lock: beside('lock'),
    owner: beside('owner.json'),
    blobs: beside('blobs'),
    derived: { checkpoint: beside('checkpoint.json'), metadata: beside('metadata.json'), queue: beside('queue.json') },
    pieces: beside('checkpoint'),
    local: undefined,
  }
}
