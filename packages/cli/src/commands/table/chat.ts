import type { CommandSpec, OptionSpec } from '../../command-line/command.ts'
import { modelOptions, permissionModeOption } from './agent-options.ts'

const whichSession: readonly OptionSpec[] = [
  { name: 'continue', short: 'c', description: 'go on with the newest session of this folder' },
  {
    name: 'resume',
    short: 'r',
    value: 'session',
    optionalValue: true,
    description: 'choose a session from a list, or go on with the one that is named',
    completes: 'session',
  },
  {
    name: 'fork',
    value: 'session',
    optionalValue: true,
    description: 'go on with a copy of a session; without a name, of the newest of this folder',
    completes: 'session',
  },
  { name: 'session', value: 'session', description: 'go on with this session', completes: 'session' },
]

/** How the screen looks: also of `attach`. */
export const lookOptions: readonly OptionSpec[] = [
  {
    name: 'theme',
    value: 'theme',
    choices: ['dark', 'light', 'high-contrast'],
    description: 'the colours of the screen',
  },
  { name: 'vim', description: 'edit with the keys of vi' },
  { name: 'screen-reader', description: 'only add lines, and draw nothing again' },
  { name: 'no-alt-screen', description: 'stay in the scrollback of the terminal' },
]

export const chatCommands: readonly CommandSpec[] = [
  {
    path: [],
    summary: 'Chat with the agent in this folder',
    description:
      'Begins a session in this folder, and sends the prompt where there is one. A session that another process runs is joined: both ' +
      'see and steer the same one.\n\n' +
      'Whoever leaves while the agent works leaves the run to be resumed.',
    positionals: [{ name: 'prompt', description: 'what to say first', many: true }],
    options: [...whichSession, ...modelOptions, permissionModeOption, ...lookOptions],
    examples: [
      { command: 'tapetree', says: 'begin a session' },
      { command: 'tapetree "explain this repository"', says: 'begin with a prompt' },
      { command: 'tapetree -c', says: 'go on with the newest session of this folder' },
      { command: 'tapetree -r', says: 'choose a session from a list' },
    ],
    load: async () => (await import('../chat/chat.ts')).chat,
  },
]
