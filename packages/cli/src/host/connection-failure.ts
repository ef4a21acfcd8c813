import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import { harmlessLine } from '../text/harmless.ts'
import { wrongCertificateCode } from './transport.ts'

/** Why a connection to a server failed: no answer, or an untrusted certificate. */
export function connectionFailure(url: string, cause: unknown): Failure {
  const shown = harmlessLine(url)
  const code = certificateCode(cause)
  if (code === undefined) {
    return new Failure(exitCodes.notFound, `${shown} does not answer.`, {
      type: 'unreachable',
      why: 'The server may be down, or only reachable from its own machine.',
      next: ['tapetree serve'],
      cause,
    })
  }
  return new Failure(exitCodes.configuration, `The certificate of ${shown} is not trusted (${code}).`, {
    type: 'untrusted-certificate',
    why: 'Nothing was sent. For a self-signed certificate, use the pairing link that the server prints.',
    next: [`tapetree attach '${shown}/#pair=<code>&fingerprint=<fingerprint>'`],
    cause,
  })
}

/** Of the error or one of its causes. */
function certificateCode(error: unknown): string | undefined {
  for (let each = error; each instanceof Error; each = each.cause) {
    const { code } = each as NodeJS.ErrnoException
    if (code !== undefined && certificateCodes.test(code)) return code
  }
  return undefined
}

/** Named as in OpenSSL and Node. */
const certificateCodes = new RegExp(
  `CERT|^UNABLE_TO_(?:VERIFY|GET_ISSUER|DECODE_ISSUER)|^(?:INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH|PATH_LENGTH_EXCEEDED)$|^${wrongCertificateCode}$`,
)
