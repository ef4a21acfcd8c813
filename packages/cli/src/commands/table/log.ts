import type { CommandSpec } from '../../command-line/command.ts'

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
    load: async () => (await import('../sessions/log-repair.ts')).runLogRepair,
  },
]
