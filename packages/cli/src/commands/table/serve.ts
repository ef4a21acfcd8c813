import type { CommandSpec } from '../../command-line/command.ts'
import { otlpOption } from './agent-options.ts'
import { lookOptions } from './chat.ts'
import { limitOption } from './tokens.ts'
import { storeOption } from './setup.ts'

export const serveCommands: readonly CommandSpec[] = [
  {
    path: ['serve'],
    summary: 'Serve sessions to other devices',
    description:
      'Runs sessions for clients on this and other machines. Prints a pairing link that admits one device and expires ' +
      'after five minutes. In a browser, the link opens a page that pairs the device and lists the sessions. Resumes ' +
      'runs that an earlier server left interrupted.\n\nListens only on this machine unless --host is given. Other ' +
      'addresses require TLS.',
    options: [
      {
        name: 'port',
        short: 'p',
        value: 'port',
        description: 'the port to listen on; 0 picks a free one',
        default: '8787',
      },
      { name: 'host', value: 'address', description: 'the address to listen on', default: '127.0.0.1' },
      { name: 'tls-cert', value: 'file', description: 'a certificate, as PEM; SIGHUP reloads it', completes: 'file' },
      { name: 'tls-key', value: 'file', description: 'the private key of the certificate, as PEM', completes: 'file' },
      { name: 'self-signed', description: 'create a certificate and include its fingerprint in the link' },
      { name: 'allow-insecure', description: 'accept other machines without TLS, for example behind a TLS proxy' },
      { name: 'allowed-host', value: 'name', many: true, description: 'a host name that clients use for this server' },
      {
        name: 'public-url',
        value: 'url',
        description: 'the URL of a proxy in front of this server, such as https://tape.example/agents',
      },
      {
        name: 'trusted-proxy',
        value: 'address',
        many: true,
        description: 'an address or network whose X-Forwarded headers are trusted',
      },
      {
        name: 'allowed-origin',
        value: 'origin',
        many: true,
        description: 'another origin whose pages may use this server',
      },
      {
        name: 'pair-role',
        value: 'role',
        choices: ['view', 'queue', 'approve', 'drive'],
        description: 'the role that the pairing link grants',
        default: 'drive',
      },
      {
        name: 'root',
        value: 'folder',
        many: true,
        description: 'a folder that sessions may work in',
        default: 'this folder',
        completes: 'folder',
      },
      storeOption,
      {
        name: 'bus',
        value: 'url',
        description:
          'form one service with the other servers of the database: the URL of a NATS server, nats://host:4222, or the one at which the others reach this server, http://host:8787, or @file with it inside; also TAPETREE_BUS',
      },
      {
        name: 'node',
        value: 'name',
        description: 'the name of this server in the service; no two have the same',
        default: 'the name of the machine and the number of the process',
      },
      limitOption,
      {
        name: 'log-level',
        value: 'level',
        choices: ['debug', 'info', 'warn', 'error', 'silent'],
        description: 'what to log on standard error; info includes every request',
        default: 'warn',
      },
      otlpOption,
      {
        name: 'drain',
        value: 'seconds',
        description:
          'when stopped, take no new prompts and wait this long for runs to finish; a second signal ends it at once',
        default: '0',
      },
      { name: 'no-recovery', description: 'do not resume runs that an earlier server left interrupted' },
    ],
    examples: [
      { command: 'tapetree serve', says: 'for clients on this machine, or through a tunnel' },
      { command: 'tapetree serve --host 0.0.0.0 --self-signed', says: 'for a phone in the same network' },
      {
        command: 'tapetree serve --store postgres://app@db/sessions --bus nats://bus:4222 --node a',
        says: 'as one of several servers, each of which serves all sessions',
      },
      {
        command: 'tapetree serve --public-url https://tape.example/agents --trusted-proxy 127.0.0.1',
        says: 'behind a proxy on this machine',
      },
    ],
    load: async () => (await import('../serve/serve.ts')).serve,
  },
  {
    path: ['attach'],
    summary: 'Open a session of another process or of a server',
    description:
      'Takes a session on this machine or the address of a server. The pairing link that `tapetree serve` prints ' +
      'pairs this device and is remembered: afterwards the address is enough.',
    positionals: [
      { name: 'where', description: 'a session, a pairing link, or the address of a server', completes: 'session' },
      {
        name: 'session',
        description: 'the session to open on a server; without it, choose from a list',
        completes: 'session',
      },
    ],
    options: [
      { name: 'token', value: 'token', description: 'a token for the server; or set TAPETREE_TOKEN' },
      {
        name: 'allow-insecure',
        description: 'send the token to another machine without TLS, for example through a tunnel',
      },
      { name: 'here', description: 'let the tools of the session work in this folder, while this screen is open' },
      {
        name: 'recreate',
        description: 'with --here: write the files that the session has kept into this folder, which must be empty',
      },
      { name: 'list', description: 'list known servers' },
      { name: 'forget', value: 'url', description: 'forget a server and its token' },
      ...lookOptions,
    ],
    examples: [
      { command: 'tapetree attach last', says: 'open the newest session' },
      { command: 'tapetree attach https://tape.example:8787', says: 'choose a session of a server' },
      {
        command: 'tapetree attach https://tape.example:8787 last --here',
        says: 'continue the newest session of a server with the files of this folder',
      },
    ],
    load: async () => (await import('../serve/attach.ts')).attach,
  },
  {
    path: ['tool-host'],
    summary: 'Offer folders of this machine to sessions on a server',
    description:
      'Connects to a server and runs the tools of its sessions in folders of this machine: reading and changing files, and ' +
      'commands. It opens no port, and connects again whenever the connection is lost. Commands continue meanwhile.\n\n' +
      'What this machine allows is decided here: whatever needs a permission in the mode of --permission-mode is refused, ' +
      'whatever the server allows. Keys of models never come to this machine, and secrets of this machine are redacted ' +
      'before anything is sent.',
    options: [
      { name: 'connect', value: 'url', description: 'the address of the server, or its pairing link' },
      {
        name: 'workspace',
        value: 'name=folder',
        many: true,
        description: 'a folder to offer, and its name for sessions',
      },
      { name: 'name', value: 'name', description: 'how people see this machine', default: 'the name of the machine' },
      {
        name: 'permission-mode',
        value: 'mode',
        choices: ['sandboxed', 'accept-edits', 'plan', 'auto'],
        description: 'the most that sessions may do here',
        default: 'sandboxed, or accept-edits without a sandbox',
      },
      { name: 'allow', value: 'rule', many: true, description: 'allow more than the mode, such as "command npm test"' },
      { name: 'deny', value: 'rule', many: true, description: 'never allow, such as "read ./private/**"' },
      { name: 'keep-no-files', description: 'sessions do not keep the files of these folders' },
      { name: 'token', value: 'token', description: 'a token of the role host or drive; or set TAPETREE_TOKEN' },
      {
        name: 'allow-insecure',
        description: 'send the token to another machine without TLS, for example through a tunnel',
      },
    ],
    examples: [
      {
        command: 'tapetree tool-host --connect https://tape.example:8787 --workspace app=~/app',
        says: 'offer one folder; commands run in a sandbox',
      },
      {
        command: 'tapetree tool-host --connect http://127.0.0.1:8787 --workspace app=. --permission-mode auto',
        says: 'allow everything in a container that is only for this',
      },
    ],
    load: async () => (await import('../serve/tool-host.ts')).toolHost,
  },
]
