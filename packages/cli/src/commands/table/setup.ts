import type { CommandSpec, OptionSpec } from '../../command-line/command.ts'

/** For commands that can use another store than the user's sessions. */
export const storeOption: OptionSpec = {
  name: 'store',
  value: 'store',
  description:
    'where the sessions are: a folder, postgres://user@host/database, or @file with one of them inside; also TAPETREE_STORE',
  default: 'your sessions',
}

export const setupCommands: readonly CommandSpec[] = [
  {
    path: ['models'],
    summary: 'List known models and whether you can use them',
    description:
      'A model is usable if there is a key for its provider, or if a server on this machine offers it. Looks for ' +
      'model servers on this machine each time and sends no other requests.',
    options: [
      { name: 'provider', value: 'provider', description: 'only models of this provider', completes: 'provider' },
      { name: 'usable', description: 'only models that are usable now' },
    ],
    examples: [{ command: 'tapetree models --usable', says: 'models that are usable now' }],
    load: async () => (await import('../setup/models.ts')).models,
  },
  {
    path: ['config', 'show'],
    summary: 'Show every setting, its value, and any problem with it',
    description: 'Never shows values that may be secret.',
    options: [
      { name: 'origin', description: 'show where each value comes from' },
      { name: 'all', description: 'include settings without a value or default' },
    ],
    examples: [{ command: 'tapetree config show --origin', says: 'the file and line of each value' }],
    load: async () => (await import('../setup/config.ts')).configShow,
  },
  {
    path: ['config', 'path'],
    summary: 'Show where settings, sessions and other files are stored',
    load: async () => (await import('../setup/config.ts')).configPath,
  },
  {
    path: ['doctor'],
    summary: 'Check the installation and its environment',
    description:
      'Prints the result of each check and how to fix a problem. The exit code is 3 if a check fails. Warnings do not count.',
    options: [
      { name: 'fix', description: 'fix what is safe to fix: file modes, stale sockets, derived files' },
      { ...storeOption, description: 'also check this store, such as postgres://app@db.example.org/sessions' },
    ],
    examples: [{ command: 'tapetree doctor --fix', says: 'check, and fix what is safe to fix' }],
    load: async () => (await import('../setup/doctor.ts')).doctor,
  },
  {
    path: ['store', 'migrate'],
    summary: 'Create the schema in a database, or bring it up to date',
    description:
      'Needs a user who may create roles, schemas and the extension pg_trgm. Run it before servers of a new version ' +
      'start. The store is `postgres://user@host/database`, or `@file` with it inside; without one, TAPETREE_STORE. A ' +
      'password on the command line is rejected: use PGPASSWORD, ~/.pgpass or a file.',
    positionals: [{ name: 'store', description: 'the database' }],
    examples: [
      { command: 'tapetree store migrate postgres://admin@db.example.org/sessions', says: 'create the schema' },
    ],
    load: async () => (await import('../setup/store.ts')).migrateStore,
  },
  {
    path: ['login'],
    summary: 'Store an API key for a provider',
    description:
      'Reads the key from the terminal without showing it, or from standard input. Stores it in the system keyring ' +
      'or, if there is none, in a file that only you can read. Contacts the provider only with --check.',
    positionals: [{ name: 'provider', description: 'such as anthropic', required: true, completes: 'provider' }],
    options: [
      { name: 'check', description: 'ask the provider whether the key is valid before storing it' },
      { name: 'remove', description: 'delete the stored key' },
    ],
    examples: [
      { command: 'tapetree login anthropic --check', says: 'enter a key and check it' },
      { command: 'tapetree login openai < key.txt', says: 'read the key from a file' },
    ],
    load: async () => (await import('../setup/login.ts')).login,
  },
  {
    path: ['tour'],
    summary: 'Take a one-minute tour, without a key or network',
    description:
      'A scripted model works with real tools in a temporary folder and writes a real log. The tour kills the process ' +
      'midway and then resumes the session.',
    options: [{ name: 'fast', description: 'without pauses' }],
    load: async () => (await import('../setup/tour.ts')).tour,
  },
  {
    path: ['completion'],
    summary: 'Print a shell completion script for commands, options and sessions',
    positionals: [{ name: 'shell', description: 'bash, zsh or fish' }],
    options: [
      {
        name: 'words',
        value: 'kind',
        choices: ['session', 'model', 'provider'],
        description: 'print completion words of this kind',
        hidden: true,
      },
    ],
    examples: [
      { command: 'eval "$(tapetree completion bash)"', says: 'for this shell; add it to ~/.bashrc for every shell' },
    ],
    load: async () => (await import('../setup/help.ts')).completion,
  },
  {
    path: ['man'],
    summary: 'Show the manual, or print its source if the output is not a terminal',
    load: async () => (await import('../setup/help.ts')).man,
  },
  {
    path: ['help'],
    summary: 'Show help for a command',
    positionals: [{ name: 'command', description: 'the command, such as sessions list', many: true }],
    load: async () => (await import('../setup/help.ts')).help,
  },
  {
    path: ['version'],
    summary: 'Print the version',
    load: async () => (await import('../setup/help.ts')).printVersion,
  },
]

export const mcpCommands: readonly CommandSpec[] = [
  {
    path: ['mcp', 'list'],
    summary: 'List the MCP servers of this folder and whether their tools are usable',
    description: 'Starts each accepted server and stops it again.',
    load: async () => (await import('../setup/mcp.ts')).listServers,
  },
  {
    path: ['mcp', 'accept'],
    summary: 'Accept an MCP server whose program, address or tools have changed',
    description:
      'Shows the changes, including new tool descriptions, and asks. Then trusts the server as it is now; open ' +
      'sessions can use its tools within a few seconds.',
    positionals: [{ name: 'server', description: 'its name in the settings', required: true }],
    options: [{ name: 'yes', short: 'y', description: 'accept without asking' }],
    examples: [{ command: 'tapetree mcp accept tickets', says: 'review the changes and accept them' }],
    load: async () => (await import('../setup/mcp.ts')).acceptServer,
  },
]
