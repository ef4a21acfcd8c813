import type { CommandSpec, OptionSpec, PositionalSpec } from '../../command-line/command.ts'

const session: PositionalSpec = {
  name: 'session',
  description: 'id, beginning of an id, name, or `last`',
  required: true,
  completes: 'session',
}

const at: OptionSpec = {
  name: 'at',
  value: 'entry',
  description: 'an entry: its number (`12`), id, beginning of an id, or label',
}

export const sessionCommands: readonly CommandSpec[] = [
  {
    path: ['sessions', 'list'],
    summary: 'list sessions, newest first',
    description: 'Those of this folder, unless another one or all are asked for.',
    options: [
      { name: 'all', short: 'a', description: 'of all folders' },
      { name: 'folder', value: 'folder', description: 'of this folder', completes: 'folder' },
      {
        name: 'status',
        value: 'status',
        description: 'only those that stand like this',
        choices: ['idle', 'running', 'requires_action', 'ended'],
      },
      { name: 'text', value: 'words', description: 'only those with this in their name, first message or folder' },
      { name: 'limit', value: 'count', description: 'how many', default: '20' },
      { name: 'archive', description: 'those in the archive' },
      { name: 'trash', description: 'those in the trash' },
    ],
    examples: [{ command: 'tapetree sessions list --all --limit 50', says: 'The newest 50 of all folders.' }],
    load: async () => (await import('../sessions/list.ts')).runSessionsList,
  },
  {
    path: ['sessions', 'search'],
    summary: 'find what was said in any session',
    description:
      'Every word must be in the message, in any case. Sessions in the archive and the trash are not searched.',
    positionals: [{ name: 'words', description: 'what to look for', required: true, many: true }],
    options: [{ name: 'limit', value: 'count', description: 'how many', default: '20' }],
    examples: [{ command: 'tapetree sessions search flaky test', says: 'Messages with both words.' }],
    load: async () => (await import('../sessions/search.ts')).runSessionsSearch,
  },
  {
    path: ['sessions', 'show'],
    summary: 'show what a session is: totals, branches, damage',
    positionals: [session],
    options: [{ name: 'tree', description: 'draw all entries, with branches, labels, compactions and subagents' }],
    examples: [{ command: 'tapetree sessions show last --tree', says: 'The tree of the newest session here.' }],
    load: async () => (await import('../sessions/show.ts')).runSessionsShow,
  },
  {
    path: ['sessions', 'rename'],
    summary: 'give a session a name',
    positionals: [session, { name: 'name', description: 'the new name', required: true, many: true }],
    load: async () => (await import('../sessions/change.ts')).runSessionsRename,
  },
  {
    path: ['sessions', 'label'],
    summary: 'put a label on an entry, or take it away',
    description: 'Without a label the entry loses the one it has.',
    positionals: [
      session,
      { name: 'entry', description: 'number, id or label of the entry', required: true },
      { name: 'label', description: 'the label', many: true },
    ],
    examples: [{ command: 'tapetree sessions label last 12 before the rewrite', says: 'Marks entry 12.' }],
    load: async () => (await import('../sessions/change.ts')).runSessionsLabel,
  },
  {
    path: ['sessions', 'fork'],
    summary: 'make a new session from another one',
    description: 'With all its entries, or with those up to one of them. The first session stays as it is.',
    positionals: [session],
    options: [at, { name: 'name', value: 'name', description: 'the name of the new session' }],
    load: async () => (await import('../sessions/fork.ts')).runSessionsFork,
  },
  {
    path: ['sessions', 'archive'],
    summary: 'put a session away',
    positionals: [session],
    load: async () => (await import('../sessions/change.ts')).runSessionsArchive,
  },
  {
    path: ['sessions', 'restore'],
    summary: 'get a session back from the archive or the trash',
    positionals: [{ ...session, description: 'id, beginning of an id, or name' }],
    load: async () => (await import('../sessions/change.ts')).runSessionsRestore,
  },
  {
    path: ['sessions', 'delete'],
    summary: 'move a session to the trash',
    description: 'Nothing is deleted from the disk. A session that somebody has open is refused.',
    positionals: [session],
    load: async () => (await import('../sessions/change.ts')).runSessionsDelete,
  },
  {
    path: ['sessions', 'export'],
    summary: 'write a session to a file, without secrets',
    description:
      'Secrets are replaced by markers, and what was found is listed on stderr. On a terminal it asks before anything is written.\n\n' +
      'A bundle has everything and can be imported. Markdown has the current path. HTML is one file with the tree and all branches, which ' +
      'asks no server for anything.\n\nWithout --output it goes to stdout, or to a file in this folder where stdout is a terminal or --json is given.',
    positionals: [session],
    options: [
      {
        name: 'format',
        short: 'f',
        value: 'format',
        description: 'what to write',
        choices: ['bundle', 'markdown', 'html'],
        default: 'that of the ending of --output, or bundle',
      },
      { name: 'output', short: 'o', value: 'file', description: 'where to; `-` is stdout', completes: 'file' },
      { name: 'yes', short: 'y', description: 'do not ask, and replace a file that is there' },
    ],
    examples: [
      { command: 'tapetree sessions export last -o session.html', says: 'One page to look at.' },
      { command: 'tapetree sessions export last --format markdown | less', says: 'Read it in a pager.' },
    ],
    load: async () => (await import('../sessions/export.ts')).runSessionsExport,
  },
  {
    path: ['sessions', 'import'],
    summary: 'make a session from a bundle',
    description:
      'Data only: entries get new ids, and permissions, waiting messages and open runs of the bundle are left out. Nothing in it is run.',
    positionals: [{ name: 'bundle', description: 'the file; `-` is stdin', required: true, completes: 'file' }],
    options: [{ name: 'name', value: 'name', description: 'the name of the new session' }],
    load: async () => (await import('../sessions/import.ts')).runSessionsImport,
  },
  {
    path: ['sessions', 'context'],
    summary: 'print exactly what the model is sent, and why',
    description:
      'Each message with the entry it comes from, what a compaction replaced, the system prompt and the tools. With --at and an answer it is what that ' +
      'answer was made from, and the request is made again to see whether it is the same.',
    positionals: [session],
    options: [at],
    load: async () => (await import('../sessions/context.ts')).runSessionsContext,
  },
]

export const logCommands: readonly CommandSpec[] = [
  {
    path: ['log', 'verify'],
    summary: 'read every line of a log and say what is wrong',
    description: 'Changes nothing. Exit code 7 where a log is damaged.',
    positionals: [{ name: 'session', description: 'id, beginning of an id, name, or `last`', completes: 'session' }],
    options: [{ name: 'all', short: 'a', description: 'every session' }],
    load: async () => (await import('../sessions/log.ts')).runLogVerify,
  },
  {
    path: ['log', 'repair'],
    summary: 'note in a log that its damage has been seen',
    description:
      'Nothing is cut out or rewritten: a record is appended that says what was lost. Bytes of a last line that was never finished are put into a file beside the log.',
    positionals: [
      { name: 'session', description: 'id, beginning of an id, name, or `last`', required: true, completes: 'session' },
    ],
    load: async () => (await import('../sessions/log.ts')).runLogRepair,
  },
]

export const playCommands: readonly CommandSpec[] = [
  {
    path: ['play'],
    summary: 'play a session back as it happened',
    description:
      'Pauses are shortened to 2 seconds. Keys: space pauses, . goes one step, ← and → go 10 events back and on, + and - change the speed, q quits.\n\n' +
      'Without a terminal every event is a line, as fast as it can be read; with --json it is a line of JSON.',
    positionals: [
      { name: 'session', description: 'id, beginning of an id, name, or `last`', required: true, completes: 'session' },
    ],
    options: [
      {
        name: 'speed',
        value: 'speed',
        description: 'a number, or `max` for no waiting',
        default: '1 on a terminal, otherwise max',
      },
      { name: 'from', value: 'place', description: 'where to begin: number or id of an entry, or a time' },
      { name: 'real-time', description: 'do not shorten pauses' },
    ],
    examples: [{ command: 'tapetree play last --speed 10', says: 'The newest session here, ten times as fast.' }],
    load: async () => (await import('../sessions/play.ts')).runPlay,
  },
]

export const usageCommands: readonly CommandSpec[] = [
  {
    path: ['usage'],
    summary: 'add up tokens and cost of all sessions',
    description:
      'Of sessions in the archive and the trash too: what they cost was paid. An answer that was copied by a fork counts once.',
    options: [
      {
        name: 'by',
        value: 'what',
        description: 'what a row is',
        choices: ['day', 'model', 'folder'],
        default: 'day',
      },
      { name: 'since', value: 'date', description: 'from this day on (`2026-11-01`), or of so many days (`7d`)' },
    ],
    examples: [{ command: 'tapetree usage --by model --since 30d', says: 'What each model cost in 30 days.' }],
    load: async () => (await import('../sessions/usage.ts')).runUsage,
  },
]
