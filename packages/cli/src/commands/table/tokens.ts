import type { CommandSpec, OptionSpec } from '../../command-line/command.ts'

const fileOption: OptionSpec = {
  name: 'file',
  value: 'file',
  description: 'the token file of another server',
  default: 'that of `tapetree serve`',
  completes: 'file',
}

const databaseOption: OptionSpec = {
  name: 'store',
  value: 'store',
  description:
    'the servers of this database: postgres://user@host/database, or @file with it inside; also TAPETREE_STORE',
  default: 'the token file',
}

/** Also an option of `serve`. */
export const limitOption: OptionSpec = {
  name: 'limit',
  value: 'name=amount',
  many: true,
  description:
    'a limit: live-sessions, sessions, storage-bytes (such as 500MB), requests-per-minute, or spend-per-day in US dollars',
}

export const tokenCommands: readonly CommandSpec[] = [
  {
    path: ['tokens', 'list'],
    summary: 'List the tokens of the server',
    description:
      'Shows role, folder, expiry and limits of each token, and how much of its limits it uses. The tokens themselves ' +
      'are not stored. Running servers also know how many requests and live sessions a token uses: see GET /api/tokens.',
    options: [fileOption, databaseOption],
    load: async () => (await import('../tokens/tokens.ts')).listTokens,
  },
  {
    path: ['tokens', 'create'],
    summary: 'Create a token for a client',
    description:
      'Prints the token, once. It works at once on all servers that use the token file, and no server needs to run.',
    options: [
      {
        name: 'role',
        value: 'role',
        choices: ['view', 'queue', 'approve', 'drive', 'metrics', 'host'],
        description:
          'what the client may do: watch, queue messages, answer requests, everything, only read metrics, or only connect a tool host',
        default: 'view',
      },
      { name: 'name', value: 'name', description: 'a name for people, such as that of the device' },
      {
        name: 'folder',
        value: 'folder',
        description: 'only sessions inside this folder',
        default: 'all folders of the server',
        completes: 'folder',
      },
      {
        name: 'expires',
        value: 'time',
        description: 'when it stops working: 30d, 12h, 45m, a day or a time',
        default: 'never',
      },
      limitOption,
      { name: 'tenant', value: 'name', description: 'whose sessions it reaches', default: 'default' },
      fileOption,
      databaseOption,
    ],
    examples: [
      { command: 'tapetree tokens create --role metrics --name prometheus', says: 'for a monitoring system' },
      {
        command: 'tapetree tokens create --role drive --folder . --expires 1d --limit spend-per-day=5',
        says: 'for a job that works in this folder',
      },
    ],
    load: async () => (await import('../tokens/tokens.ts')).createToken,
  },
  {
    path: ['tokens', 'revoke'],
    summary: 'Revoke tokens and all tokens that derive from them',
    description: 'Running servers close the connections of these tokens within two seconds.',
    positionals: [{ name: 'id', description: 'the id of a token, as listed', required: true, many: true }],
    options: [fileOption, databaseOption],
    load: async () => (await import('../tokens/tokens.ts')).revokeTokens,
  },
]
