import type { CommandSpec, OptionSpec } from '../../command-line/command.ts'
import { modelOptions, otlpOption, permissionModeOption, sandboxOption } from './agent-options.ts'

const whichSession: readonly OptionSpec[] = [
  { name: 'continue', short: 'c', description: 'continue the newest session of this folder' },
  {
    name: 'resume',
    short: 'r',
    value: 'session',
    optionalValue: true,
    description: 'choose a session from a list, or continue the one named',
    completes: 'session',
  },
  {
    name: 'fork',
    value: 'session',
    optionalValue: true,
    description: 'continue in a copy of a session; by default of the newest in this folder',
    completes: 'session',
  },
  { name: 'session', value: 'session', description: 'continue this session', completes: 'session' },
]

/** Display options, shared with `attach`. */
export const lookOptions: readonly OptionSpec[] = [
  {
    name: 'theme',
    value: 'theme',
    choices: ['dark', 'light', 'high-contrast'],
    description: 'the color theme',
  },
  { name: 'vim', description: 'edit with vi keys' },
  { name: 'screen-reader', description: 'write line by line and never redraw, for screen readers' },
  { name: 'no-alt-screen', description: 'keep the conversation in the scrollback of the terminal' },
]

export const chatCommands: readonly CommandSpec[] = [
  {
    path: [],
    summary: 'Chat with the agent in this folder',
    description:
      'Starts a session in this folder and sends the prompt, if given. If another process runs the session, joins it: ' +
      'both terminals see and control the same session.\n\nIf you quit during a run, you can resume it later.',
    positionals: [{ name: 'prompt', description: 'the first message', many: true }],
    options: [...whichSession, ...modelOptions, permissionModeOption, sandboxOption, ...lookOptions, otlpOption],
    examples: [
      { command: 'tapetree', says: 'start a session' },
      { command: 'tapetree "explain this repository"', says: 'start with a prompt' },
      { command: 'tapetree -c', says: 'continue the newest session of this folder' },
      { command: 'tapetree -r', says: 'choose a session from a list' },
    ],
    load: async () => (await import('../chat/chat.ts')).chat,
  },
]
