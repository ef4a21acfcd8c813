import type { CommandSpec } from '../../command-line/command.ts'
import { modelOptions, permissionModeOption, sandboxOption } from './agent-options.ts'

const serverOptions: CommandSpec['options'] = [
  {
    name: 'connect',
    value: 'address',
    description: 'use the sessions of a server that this device is paired with, or of a pairing link',
  },
  { name: 'token', value: 'token', description: 'a token of that server; also TAPETREE_TOKEN' },
  { name: 'allow-insecure', description: 'connect to another machine without TLS' },
]

export const acpCommands: readonly CommandSpec[] = [
  {
    path: ['acp'],
    summary: 'serve an editor over the Agent Client Protocol',
    description:
      'Speaks the Agent Client Protocol on stdin and stdout, as Zed, Neovim plugins and other editors expect from an agent. ' +
      'The sessions are the same as everywhere else: terminals, browsers and other editors can open them at the same ' +
      'time.\n\nNever asks whether to trust a folder. The settings of an untrusted project are ignored; run tapetree there ' +
      'once to trust it.',
    options: [...modelOptions, permissionModeOption, sandboxOption, ...serverOptions],
    examples: [
      { command: 'tapetree acp --permission-mode accept-edits', says: 'as the command of an agent in an editor' },
      { command: 'tapetree acp --connect https://tape.example:8787', says: 'with the sessions of a server' },
    ],
    load: async () => (await import('../acp.ts')).runAcp,
  },
]
