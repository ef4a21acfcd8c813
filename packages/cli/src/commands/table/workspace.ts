import type { CommandSpec } from '../../command-line/command.ts'

export const workspaceCommands: readonly CommandSpec[] = [
  {
    path: ['workspace', 'size'],
    summary: 'Show how much disk space file snapshots use',
    description:
      'Lists each folder whose files are recorded, with the size of its snapshots on disk, and how long they are kept.',
    load: async () => (await import('../workspace/workspace.ts')).workspaceSize,
  },
  {
    path: ['workspace', 'gc'],
    summary: 'Delete old file snapshots and compress the rest',
    description:
      'Keeps every snapshot for 30 days, and afterwards those at your messages and the newest of each session. ' +
      'Deletes snapshots that no session names, and the oldest ones of a folder that uses more than 2 GiB, but none at ' +
      'a message of a current branch. The settings snapshots.maxAgeDays and snapshots.maxBytes change the limits. Says ' +
      'what is kept and why. Never touches the folders themselves. A chat or a server does the same once a day.',
    load: async () => (await import('../workspace/workspace.ts')).workspaceGc,
  },
]
