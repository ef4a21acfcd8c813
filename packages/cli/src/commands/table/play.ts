import type { CommandSpec } from '../../command-line/command.ts'

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
