import type { CommandSpec } from '../../command-line/command.ts'

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
