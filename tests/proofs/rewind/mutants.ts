import type { Session } from '@tapetree/session'
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, lstatSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FileVersions, type FileChange } from '../../../packages/agent/src/workspace/file-versions.ts'
import { SnapshotStore } from '../../../packages/agent/src/workspace/snapshot-store.ts'
import { WorkspaceSnapshots } from '../../../packages/agent/src/workspace/workspace-snapshots.ts'
import { replaceMember, type Mutant } from '../mutants/catch-mutant.ts'

/** Faults that the histories must find, and the changes that bring them to light soonest. */
export const historyMutants: Record<string, { mutant: Mutant; actions?: readonly string[] }> = {
  'a store that does not see executable bits': {
    mutant: () => changeDiffs((change) => change.from?.id !== change.to?.id),
    actions: ['mode'],
  },
  'a store that does not see removed files': {
    mutant: () => changeDiffs((change) => change.from !== undefined),
    actions: ['remove', 'removeFolder'],
  },
  'a store that does not see new files': {
    mutant: () => changeDiffs((change) => change.to !== undefined),
    actions: ['write', 'rename'],
  },
  'a restore that converts line ends': {
    mutant: () =>
      afterExtract((file) => writeFileSync(file, readFileSync(file, 'latin1').replaceAll('\r\n', '\n'), 'latin1')),
    actions: ['remove', 'removeFolder'],
  },
  'a restore that writes texts in UTF-8': {
    mutant: () => afterExtract((file) => writeFileSync(file, readFileSync(file, 'utf8'), 'utf8')),
    actions: ['remove', 'removeFolder'],
  },
  'a restore that forgets executable bits': {
    mutant: () => afterExtract((file) => chmodSync(file, 0o644)),
    actions: ['remove', 'removeFolder'],
  },
  'a restore that changes the targets of links': {
    mutant: () =>
      afterExtract(
        () => undefined,
        (file) => {
          rmSync(file)
          symlinkSync('elsewhere', file)
        },
      ),
    actions: ['link', 'remove', 'renameFolder'],
  },
  'a snapshot that is taken too late': {
    mutant: () => replaceMember(WorkspaceSnapshots.prototype, 'beforeCall', () => () => Promise.resolve()),
    actions: ['overwrite', 'append'],
  },
  'a snapshot that misses every third change': {
    mutant: () => {
      let count = 0
      let last: Awaited<ReturnType<SnapshotStore['take']>> | undefined
      return replaceMember(SnapshotStore.prototype, 'take', (take) => {
        return async function (this: SnapshotStore, options = {}) {
          if (last && ++count % 3 === 0) return last
          return (last = await take.call(this, options))
        }
      })
    },
  },
  'a plan that takes what the user changed': {
    mutant: () =>
      replaceMember(WorkspaceSnapshots.prototype, 'prepare', (prepare) => {
        return async function (this: WorkspaceSnapshots, targetId) {
          const prepared = await prepare.call(this, targetId)
          return { ...prepared, restored: [...prepared.restored, ...prepared.kept], kept: [] }
        }
      }),
  },
  'a plan that forgets what was ignored': {
    mutant: () => replaceMember(FileVersions.prototype, 'ignored', () => () => Promise.resolve(new Set<string>())),
    actions: ['leftOut', 'removeIgnoreFile'],
  },
  'a restore that deletes ignored files': {
    mutant: () =>
      replaceMember(WorkspaceSnapshots.prototype, 'restore', (restore) => {
        return async function (this: WorkspaceSnapshots, prepared, choices) {
          const done = await restore.call(this, prepared, choices)
          const store = await this.store()
          for (const name of ['out', 'a.log', '.env'])
            rmSync(join(store.root, store.prefix, name), { recursive: true, force: true })
          return done
        }
      }),
    actions: ['leftOut', 'overwrite'],
  },
  "a snapshot that refreshes the user's index": {
    mutant: () =>
      replaceMember(SnapshotStore.prototype, 'take', (take) => {
        return async function (this: SnapshotStore, options) {
          if (existsSync(join(this.root, '.git')))
            execFileSync('git', ['-C', this.root, 'update-index', '--force-write-index'], { stdio: 'ignore' })
          return take.call(this, options)
        }
      }),
  },
  'a restore that leaves a file behind': {
    mutant: () =>
      replaceMember(WorkspaceSnapshots.prototype, 'restore', (restore) => {
        return async function (this: WorkspaceSnapshots, prepared, choices) {
          const done = await restore.call(this, prepared, choices)
          const store = await this.store()
          writeFileSync(join(store.root, store.prefix, 'left-behind'), '')
          return done
        }
      }),
  },
}

/** Faults that only a user who prunes brings to light. */
export const pruneMutants: Record<string, Mutant> = {
  'a store that borrows for good': () => replaceMember(SnapshotStore.prototype, 'own', () => () => Promise.resolve()),
  'a store that forgets to copy': () =>
    replaceMember(SnapshotStore.prototype, 'own', () => {
      return async function (this: SnapshotStore) {
        rmSync(join(this.path, 'borrowed'), { force: true })
      }
    }),
}

/** Begins the name of a step of the program that is killed. */
export const beforeLine = 'before the line '

/** Faults that only a kill brings to light. They are added to the program that is killed. */
export const killMutants: Record<string, (session: Session) => () => void> = {
  'a rewind that moves the conversation when the restore has ended': (session) =>
    replaceMember(WorkspaceSnapshots.prototype, 'restore', (restore) => {
      return async function (this: WorkspaceSnapshots, prepared, choices, { leafId } = {}) {
        const done = await restore.call(this, prepared, choices)
        if (leafId !== undefined) await session.branch(leafId, { rewind: 'undo', restoreId: done.restoreId })
        return done
      }
    }),
  'a rewind that moves the conversation before the restore starts': (session) =>
    replaceMember(WorkspaceSnapshots.prototype, 'restore', (restore) => {
      return async function (this: WorkspaceSnapshots, prepared, choices, { leafId } = {}) {
        if (leafId !== undefined) await session.branch(leafId, { rewind: 'undo' })
        return restore.call(this, prepared, choices)
      }
    }),
}

function changeDiffs(isSeen: (change: FileChange) => boolean): () => void {
  return replaceMember(FileVersions.prototype, 'diffs', (diffs) => {
    return async function (this: FileVersions, pairs) {
      return (await diffs.call(this, pairs)).map((changes) => changes.filter(isSeen))
    }
  })
}

function afterExtract(
  change: (file: string) => void,
  changeLink: (file: string) => void = () => undefined,
): () => void {
  return replaceMember(FileVersions.prototype, 'extract', (extract) => {
    return async function (this: FileVersions, tree, paths, folder) {
      await extract.call(this, tree, paths, folder)
      for (const path of paths) {
        const file = join(folder, path)
        if (lstatSync(file).isSymbolicLink()) changeLink(file)
        else change(file)
      }
    }
  })
}
