import { exitCodes } from '../../command-line/exit-code.ts'
import { Failure } from '../../command-line/failure.ts'
import { failureOf } from '../../command-line/failure-of.ts'
import type { ServeOptions } from './options.ts'

/** Why it cannot listen, with what to try. */
export function serveFailure(cause: unknown, { server }: Pick<ServeOptions, 'server'>): Failure {
  const { code } = cause as NodeJS.ErrnoException
  const { host, port } = server
  switch (code) {
    case 'EADDRINUSE':
      return new Failure(exitCodes.configuration, `Port ${port} of ${host} is taken.`, {
        type: 'port-taken',
        why: 'Another program listens there; it may be a server of yours.',
        next: ['tapetree serve --port 0', `tapetree attach http://localhost:${port}`],
        cause,
      })
    case 'EACCES':
      return new Failure(exitCodes.configuration, `Port ${port} is not for you to listen on.`, {
        type: 'port-forbidden',
        next: ['tapetree serve --port 8787'],
        cause,
      })
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new Failure(exitCodes.configuration, `${host} is no address of this machine.`, {
        type: 'no-such-address',
        next: ['tapetree serve', 'tapetree serve --host 0.0.0.0 --self-signed'],
        cause,
      })
    default:
      return failureOf(cause)
  }
}
