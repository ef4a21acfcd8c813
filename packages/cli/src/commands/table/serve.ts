import type { CommandSpec } from '../../command-line/command.ts'
import { lookOptions } from './chat.ts'

export const serveCommands: readonly CommandSpec[] = [
  {
    path: ['serve'],
    summary: 'Serve sessions to other screens',
    description:
      'Runs sessions for screens on this machine and on others, and prints a link that lets one device in, once and within five ' +
      'minutes. Runs that a server before this one left in the middle are gone on with.\n\n' +
      'It listens on this machine alone unless --host says otherwise, and another address needs TLS.',
    options: [
      {
        name: 'port',
        short: 'p',
        value: 'port',
        description: 'where to listen; 0 takes one that is free',
        default: '8787',
      },
      { name: 'host', value: 'address', description: 'the address to listen on', default: '127.0.0.1' },
      { name: 'tls-cert', value: 'file', description: 'a certificate, as PEM', completes: 'file' },
      { name: 'tls-key', value: 'file', description: 'the key of the certificate, as PEM', completes: 'file' },
      { name: 'self-signed', description: 'make a certificate, and put its fingerprint into the link' },
      { name: 'allow-insecure', description: 'let other machines in without TLS, as where a proxy does it' },
      { name: 'allowed-host', value: 'name', many: true, description: 'a name that the server is called by' },
      {
        name: 'root',
        value: 'folder',
        many: true,
        description: 'a folder that sessions may work in',
        default: 'this folder',
        completes: 'folder',
      },
      { name: 'no-recovery', description: 'leave runs alone that a server before this one left in the middle' },
    ],
    examples: [
      { command: 'tapetree serve', says: 'for screens on this machine, or through a tunnel' },
      { command: 'tapetree serve --host 192.0.2.7 --self-signed', says: 'for a phone in the same network' },
    ],
    load: async () => (await import('../serve/serve.ts')).serve,
  },
  {
    path: ['attach'],
    summary: 'Open a session of another process or of a server',
    description:
      'Takes a session of this machine, or the address of a server. The pairing link that `tapetree serve` prints lets this device in ' +
      'and is remembered: from then on the address will do.',
    positionals: [
      { name: 'where', description: 'a session, a pairing link, or the address of a server', completes: 'session' },
      {
        name: 'session',
        description: 'of a server: the session to open; without it there is a list',
        completes: 'session',
      },
    ],
    options: [
      { name: 'token', value: 'token', description: 'a token of the server; TAPETREE_TOKEN will do as well' },
      { name: 'allow-insecure', description: 'send the token to another machine without TLS, as through a tunnel' },
      { name: 'list', description: 'say which servers are known' },
      { name: 'forget', value: 'url', description: 'forget a server and the token for it' },
      ...lookOptions,
    ],
    examples: [
      { command: 'tapetree attach last', says: 'look at the newest session' },
      { command: 'tapetree attach https://tape.example:8787', says: 'choose a session of a server' },
    ],
    load: async () => (await import('../serve/attach.ts')).attach,
  },
]
