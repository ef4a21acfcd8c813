import type { CommandSpec, OptionSpec, PositionalSpec } from '../../command-line/command.ts'
import { sourceNames } from '../../import/import-source.ts'

const session: PositionalSpec = {
  name: 'session',
  description: 'id, id prefix, name, or `last`',
  required: true,
  completes: 'session',
}

const at: OptionSpec = {
  name: 'at',
  value: 'entry',
  description: 'an entry: its number (`12`), id, id prefix, or label',
}

export const sessionCommands: readonly CommandSpec[] = [
  {
    path: ['sessions', 'list'],
    summary: 'list sessions, newest first',
    description: 'Lists sessions of this folder by default.',
    options: [
      { name: 'all', short: 'a', description: 'of all folders' },
      { name: 'folder', value: 'folder', description: 'of this folder', completes: 'folder' },
      {
        name: 'status',
        value: 'status',
        description: 'only sessions with this status',
        choices: ['idle', 'running', 'requires_action', 'ended'],
      },
      {
        name: 'text',
        value: 'words',
        description: 'only sessions with this text in their name, first message or folder',
      },
      { name: 'limit', value: 'count', description: 'how many', default: '20' },
      { name: 'archive', description: 'archived sessions' },
      { name: 'trash', description: 'sessions in the trash' },
    ],
    examples: [{ command: 'tapetree sessions list --all --limit 50', says: 'The newest 50 of all folders.' }],
    load: async () => (await import('../sessions/list.ts')).runSessionsList,
  },
  {
    path: ['sessions', 'search'],
    summary: 'search messages in all sessions',
    description:
      'A message matches if it contains every word; case is ignored. Archived and deleted sessions are searched only with --archive or --trash.',
    positionals: [{ name: 'words', description: 'words to search for', required: true, many: true }],
    options: [
      { name: 'limit', value: 'count', description: 'how many', default: '20' },
      { name: 'archive', description: 'archived sessions' },
      { name: 'trash', description: 'sessions in the trash' },
    ],
    examples: [{ command: 'tapetree sessions search flaky test', says: 'Messages that contain both words.' }],
    load: async () => (await import('../sessions/search.ts')).runSessionsSearch,
  },
  {
    path: ['sessions', 'show'],
    summary: 'show details of a session: totals, branches, damage',
    positionals: [session],
    options: [{ name: 'tree', description: 'draw all entries, with branches, labels, compactions and subagents' }],
    examples: [
      { command: 'tapetree sessions show last --tree', says: 'The tree of the newest session of this folder.' },
    ],
    load: async () => (await import('../sessions/show.ts')).runSessionsShow,
  },
  {
    path: ['sessions', 'rename'],
    summary: 'rename a session',
    positionals: [session, { name: 'name', description: 'the new name', required: true, many: true }],
    load: async () => (await import('../sessions/change.ts')).runSessionsRename,
  },
  {
    path: ['sessions', 'label'],
    summary: 'label an entry, or remove its label',
    description: 'Without a label, removes the label of the entry.',
    positionals: [
      session,
      { name: 'entry', description: 'number, id or label of the entry', required: true },
      { name: 'label', description: 'the label', many: true },
    ],
    examples: [{ command: 'tapetree sessions label last 12 before the rewrite', says: 'Labels entry 12.' }],
    load: async () => (await import('../sessions/change.ts')).runSessionsLabel,
  },
  {
    path: ['sessions', 'fork'],
    summary: 'copy a session to a new one',
    description: 'Copies all entries, or those up to the given one. The original session does not change.',
    positionals: [session],
    options: [at, { name: 'name', value: 'name', description: 'the name of the new session' }],
    load: async () => (await import('../sessions/fork.ts')).runSessionsFork,
  },
  {
    path: ['sessions', 'compare'],
    summary: 'compare two entries or branches, with their files',
    description:
      'Shows the common ancestor, and on each side the messages, cost, time and results of checks; then the files that ' +
      'differ, with the numbers of added and removed lines. Without a second entry, compares with the current one.',
    positionals: [
      session,
      { name: 'left', description: 'number, id or label of an entry', required: true },
      { name: 'right', description: 'the other entry' },
    ],
    options: [{ name: 'diff', description: 'also print the changed lines' }],
    examples: [{ command: 'tapetree sessions compare last 12 --diff', says: 'What has changed since entry 12.' }],
    load: async () => (await import('../sessions/compare.ts')).runSessionsCompare,
  },
  {
    path: ['sessions', 'rewind'],
    summary: 'go back to an entry: the conversation, the files, or both',
    description:
      'Files that only the agent changed since then go back. Files that only others changed stay. Files that both ' +
      'changed stay too, unless --conflicts says otherwise. If the entry is one of your messages, the conversation ' +
      'continues before it. Nothing is lost: --undo takes it back.',
    positionals: [session, { name: 'entry', description: 'number, id or label of the entry' }],
    options: [
      { name: 'talk', description: 'only the conversation' },
      { name: 'files', description: 'only the files' },
      {
        name: 'conflicts',
        value: 'choice',
        description: 'what happens to files that the agent and others changed',
        choices: ['keep', 'take', 'merge'],
        default: 'keep',
      },
      { name: 'dry-run', description: 'only say what would happen' },
      { name: 'undo', description: 'take back the last rewind' },
      {
        name: 'interrupted',
        value: 'how',
        description: 'end a rewind of files that was interrupted',
        choices: ['finish', 'undo'],
      },
    ],
    examples: [
      { command: 'tapetree sessions rewind last 12 --dry-run', says: 'Which files would go back to entry 12.' },
      { command: 'tapetree sessions rewind last --undo', says: 'Takes back the last rewind.' },
    ],
    load: async () => (await import('../sessions/rewind.ts')).runSessionsRewind,
  },
  {
    path: ['sessions', 'blocked'],
    summary: 'show files that the sandbox took back, and apply them',
    description:
      'Commands in the sandbox cannot make files that control what other programs run, such as hooks or settings of an ' +
      'editor. Such files are moved out of the working folder and kept. Also lists what commands wrote to the home ' +
      'folder, if it is kept.',
    positionals: [session],
    options: [
      { name: 'apply', value: 'id', description: 'move this file to its path' },
      { name: 'discard', value: 'id', description: 'delete this file' },
    ],
    examples: [
      { command: 'tapetree sessions blocked last', says: 'The files, with their contents.' },
      { command: 'tapetree sessions blocked last --apply job-1.0', says: 'Applies one of them.' },
    ],
    load: async () => (await import('../sessions/blocked.ts')).runSessionsBlocked,
  },
  {
    path: ['sessions', 'archive'],
    summary: 'archive a session',
    positionals: [session],
    load: async () => (await import('../sessions/change.ts')).runSessionsArchive,
  },
  {
    path: ['sessions', 'restore'],
    summary: 'restore a session from the archive or the trash',
    positionals: [{ ...session, description: 'id, id prefix, or name' }],
    load: async () => (await import('../sessions/change.ts')).runSessionsRestore,
  },
  {
    path: ['sessions', 'delete'],
    summary: 'move a session to the trash, or delete it for good',
    description:
      'Keeps all files on disk, unless --forever is given. Fails if the session is open in another process.\n\nWith ' +
      '--forever, deletes the session from any place, also from the archive and the trash, together with its prompts ' +
      'in the history of the composer, and lists the sessions that contain copies of it. On a terminal, asks first; ' +
      'otherwise --yes is required.',
    positionals: [session],
    options: [
      { name: 'forever', description: 'delete it for good; it cannot be restored' },
      { name: 'yes', short: 'y', description: 'do not ask before deleting for good' },
    ],
    examples: [{ command: 'tapetree sessions delete 019a --forever', says: 'Deletes the session and its files.' }],
    load: async () => (await import('../sessions/change.ts')).runSessionsDelete,
  },
  {
    path: ['sessions', 'export'],
    summary: 'export a session to a file, without secrets',
    description:
      'Replaces secrets with markers and lists them on stderr. On a terminal, asks before it writes anything.\n\nA ' +
      'bundle has everything and can be imported. Markdown has the current path. HTML is one self-contained file with ' +
      'the tree and all branches.\n\nWithout --output, writes to stdout, or to a file in this folder if stdout is a ' +
      'terminal or --json is given.',
    positionals: [session],
    options: [
      {
        name: 'format',
        short: 'f',
        value: 'format',
        description: 'the output format',
        choices: ['bundle', 'markdown', 'html'],
        default: 'from the extension of --output, or bundle',
      },
      { name: 'output', short: 'o', value: 'file', description: 'the output file; `-` is stdout', completes: 'file' },
      { name: 'yes', short: 'y', description: 'do not ask, and overwrite an existing file' },
    ],
    examples: [
      { command: 'tapetree sessions export last -o session.html', says: 'One page for the browser.' },
      { command: 'tapetree sessions export last --format markdown | less', says: 'Read it in a pager.' },
    ],
    load: async () => (await import('../sessions/export.ts')).runSessionsExport,
  },
  {
    path: ['sessions', 'import'],
    summary: 'import a session from a bundle',
    description:
      'Imports data only: entries get new ids; permissions, queued messages and open runs are left out. Runs nothing ' +
      'from the bundle.\n\nFor sessions of other programs, see `tapetree import`.',
    positionals: [{ name: 'bundle', description: 'the file; `-` is stdin', required: true, completes: 'file' }],
    options: [{ name: 'name', value: 'name', description: 'the name of the new session' }],
    load: async () => (await import('../sessions/import.ts')).runSessionsImport,
  },
  {
    path: ['sessions', 'copy'],
    summary: 'copy sessions to another store, byte for byte',
    description:
      'A store is a folder of sessions, `postgres://user@host/database`, or `@file` with one of them inside. The side ' +
      'that is not given is your own sessions. Ids, lines, blobs and places stay the same; drafts, output of background ' +
      'commands and file snapshots are not copied.\n\nA copy appears when it is complete and its lines were compared. ' +
      'After an interruption, run the command again: sessions that were copied are skipped. A session that a process ' +
      'has open for writing is not copied, and a different session with the same id in the target is never changed.' +
      '\n\nA password on the command line is rejected. Use PGPASSWORD, ~/.pgpass or `@file`.',
    positionals: [{ name: 'session', description: 'id, id prefix, name, or `last`', many: true, completes: 'session' }],
    options: [
      { name: 'from', value: 'store', description: 'where the sessions are', default: 'your sessions' },
      { name: 'to', value: 'store', description: 'where the copies go', default: 'your sessions' },
      { name: 'all', short: 'a', description: 'every session, also archived ones and those in the trash' },
      { name: 'dry-run', description: 'only say what would happen' },
    ],
    examples: [
      {
        command: 'tapetree sessions copy --all --to postgres://app@db.example.org/sessions',
        says: 'Copies all of your sessions to a database.',
      },
      {
        command: 'tapetree sessions copy 019a --from @database.txt --to /backup/sessions',
        says: 'Copies one session from the database that a file names to a folder.',
      },
    ],
    load: async () => (await import('../sessions/copy.ts')).runSessionsCopy,
  },
  {
    path: ['sessions', 'context'],
    summary: 'print exactly what the model receives, and why',
    description:
      'Shows each message with its source entry, what a compaction replaced, the system prompt and the tools. With ' +
      '--at and an answer, shows the context of that answer, rebuilds its request and compares the two.',
    positionals: [session],
    options: [at],
    load: async () => (await import('../sessions/context.ts')).runSessionsContext,
  },
]

export const importCommands: readonly CommandSpec[] = [
  {
    path: ['import'],
    summary: 'import sessions of Claude Code, Codex, pi, opencode and Gemini CLI',
    description:
      'Finds the sessions of these programs on this machine and imports them as sessions of yours, with branches, ' +
      'compactions, tool calls, images, times and costs. Never changes the files of the programs, and runs nothing: ' +
      'an imported session has no permissions, and tool calls without a result are closed.\n\nRun it again at any ' +
      'time: it adds only what is new, to the same sessions. Prints how many lines were kept, merged or dropped, and ' +
      'why.\n\nWithout --all or a path, lists what it finds and asks.',
    positionals: [
      { name: 'path', description: 'a session file, or a folder with some', many: true, completes: 'file' },
    ],
    options: [
      { name: 'all', short: 'a', description: 'import everything that is found, without asking' },
      { name: 'from', value: 'program', description: 'only sessions of this program', choices: [...sourceNames] },
      { name: 'project', value: 'folder', description: 'only sessions of this folder', completes: 'folder' },
      { name: 'dry-run', description: 'only say what would happen' },
    ],
    examples: [
      { command: 'tapetree import', says: 'What there is, with a question.' },
      {
        command: 'tapetree import --all --from claude-code --project .',
        says: 'The sessions of Claude Code in this folder.',
      },
    ],
    load: async () => (await import('../sessions/import-history.ts')).runImport,
  },
]

export const logCommands: readonly CommandSpec[] = [
  {
    path: ['log', 'verify'],
    summary: 'check a session log for damage',
    description: 'Changes nothing. The exit code is 7 if a log is damaged.',
    positionals: [{ name: 'session', description: 'id, id prefix, name, or `last`', completes: 'session' }],
    options: [{ name: 'all', short: 'a', description: 'every session' }],
    load: async () => (await import('../sessions/log.ts')).runLogVerify,
  },
  {
    path: ['log', 'repair'],
    summary: 'acknowledge damage in a log so it is reported once',
    description:
      'Removes and rewrites nothing: appends a record of what was lost. Bytes of an unfinished last line move to a ' +
      'file beside the log.',
    positionals: [
      { name: 'session', description: 'id, id prefix, name, or `last`', required: true, completes: 'session' },
    ],
    load: async () => (await import('../sessions/log.ts')).runLogRepair,
  },
]

export const playCommands: readonly CommandSpec[] = [
  {
    path: ['play'],
    summary: 'replay a session as it happened',
    description:
      'Shortens pauses to 2 seconds. Keys: space pauses, . steps once, ← and → move 10 events back and forward, + and ' +
      '- change the speed, q quits.\n\nWithout a terminal, prints one line per event without waiting; with --json, ' +
      'one line of JSON per event.',
    positionals: [
      { name: 'session', description: 'id, id prefix, name, or `last`', required: true, completes: 'session' },
    ],
    options: [
      {
        name: 'speed',
        value: 'speed',
        description: 'a number, or `max` for no waiting',
        default: '1 on a terminal, otherwise max',
      },
      { name: 'from', value: 'place', description: 'where to start: number or id of an entry, or a time' },
      { name: 'real-time', description: 'do not shorten pauses' },
    ],
    examples: [
      {
        command: 'tapetree play last --speed 10',
        says: 'Replay the newest session of this folder at ten times the speed.',
      },
    ],
    load: async () => (await import('../sessions/play.ts')).runPlay,
  },
]

export const usageCommands: readonly CommandSpec[] = [
  {
    path: ['usage'],
    summary: 'sum up tokens and cost of all sessions',
    description: 'Includes archived and deleted sessions. Counts an answer that a fork copied once.',
    options: [
      {
        name: 'by',
        value: 'what',
        description: 'how to group the rows',
        choices: ['day', 'model', 'folder'],
        default: 'day',
      },
      { name: 'since', value: 'date', description: 'from this day on (`2026-11-01`), or the last days (`7d`)' },
    ],
    examples: [
      { command: 'tapetree usage --by model --since 30d', says: 'The cost of each model in the last 30 days.' },
    ],
    load: async () => (await import('../sessions/usage.ts')).runUsage,
  },
]
