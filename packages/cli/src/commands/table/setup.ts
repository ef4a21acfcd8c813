import type { CommandSpec } from '../../command-line/command.ts'

export const setupCommands: readonly CommandSpec[] = [
  {
    path: ['models'],
    summary: 'List the models that are known, and which of them can be used',
    description:
      'A model can be used if there is a key for its provider, or if it is served on this machine. Servers of models on this machine are looked for each time; nobody else is asked.',
    options: [
      { name: 'provider', value: 'provider', description: 'only those of this provider', completes: 'provider' },
      { name: 'usable', description: 'only those that can be used now' },
    ],
    examples: [{ command: 'tapetree models --usable', says: 'what can be used now' }],
    load: async () => (await import('../setup/models.ts')).models,
  },
  {
    path: ['config', 'show'],
    summary: 'Show every setting, its value, and what is wrong with the settings',
    description: 'Values that may be secret are never shown.',
    options: [
      { name: 'origin', description: 'also say where each value comes from' },
      { name: 'all', description: 'also those that nobody has set and that have no default' },
    ],
    examples: [{ command: 'tapetree config show --origin', says: 'which file and line a value comes from' }],
    load: async () => (await import('../setup/config.ts')).configShow,
  },
  {
    path: ['config', 'path'],
    summary: 'Say where settings, sessions and everything else are kept',
    load: async () => (await import('../setup/config.ts')).configPath,
  },
  {
    path: ['doctor'],
    summary: 'Check that everything tapetree needs is there and works',
    description:
      'Each check says whether all is well, and what to do where it is not. The exit code is 3 where a check failed. Warnings do not count.',
    options: [
      { name: 'fix', description: 'mend what can be mended safely: modes of files, dead sockets, derived files' },
    ],
    examples: [{ command: 'tapetree doctor --fix', says: 'look, and mend what can be mended' }],
    load: async () => (await import('../setup/doctor.ts')).doctor,
  },
  {
    path: ['login'],
    summary: 'Keep a key for a provider',
    description:
      'The key is typed without being shown, or read from standard input. It is kept in the keyring of the system, or, where there is none, in a file that only you may read. The provider is asked about it only with --check.',
    positionals: [{ name: 'provider', description: 'such as anthropic', required: true, completes: 'provider' }],
    options: [
      { name: 'check', description: 'ask the provider whether it accepts the key before it is kept' },
      { name: 'remove', description: 'forget the key' },
    ],
    examples: [
      { command: 'tapetree login anthropic --check', says: 'type a key and try it' },
      { command: 'tapetree login openai < key.txt', says: 'take it from a file' },
    ],
    load: async () => (await import('../setup/login.ts')).login,
  },
  {
    path: ['tour'],
    summary: 'See in a minute what tapetree does, without key and network',
    description:
      'A scripted model works with real tools in a temporary folder and writes a real log. In the middle its process is killed, and you see how the session goes on.',
    options: [{ name: 'fast', description: 'without pauses' }],
    load: async () => (await import('../setup/tour.ts')).tour,
  },
  {
    path: ['completion'],
    summary: 'Print a script that completes commands, options and sessions in a shell',
    positionals: [{ name: 'shell', description: 'bash, zsh or fish' }],
    options: [
      {
        name: 'words',
        value: 'kind',
        choices: ['session', 'model', 'provider'],
        description: 'print the words of this kind',
        hidden: true,
      },
    ],
    examples: [
      { command: 'eval "$(tapetree completion bash)"', says: 'for this shell; put it into ~/.bashrc for every one' },
    ],
    load: async () => (await import('../setup/help.ts')).completion,
  },
  {
    path: ['man'],
    summary: 'Show the manual, or print its source where the output is no terminal',
    load: async () => (await import('../setup/help.ts')).man,
  },
  {
    path: ['help'],
    summary: 'Say how a command is used',
    positionals: [{ name: 'command', description: 'its words, such as sessions list', many: true }],
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
    summary: 'List the MCP servers of this folder, and whether their tools can be used',
    description: 'Starts each server that you have accepted, and stops it again.',
    load: async () => (await import('../setup/mcp.ts')).listServers,
  },
  {
    path: ['mcp', 'accept'],
    summary: 'Accept an MCP server whose program, address or tools have changed',
    description:
      'Shows what is different, with the new descriptions of the tools, and asks. From then on the server is known as it is now; sessions that are open use its tools within a few seconds.',
    positionals: [{ name: 'server', description: 'its name in the settings', required: true }],
    options: [{ name: 'yes', short: 'y', description: 'accept without asking' }],
    examples: [{ command: 'tapetree mcp accept tickets', says: 'see what is different, and accept it' }],
    load: async () => (await import('../setup/mcp.ts')).acceptServer,
  },
]
