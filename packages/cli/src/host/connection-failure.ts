import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import { harmlessLine } from '../text/harmless.ts'
import { wrongCertificateCode } from './transport.ts'

/** Why a server could not be spoken to: nobody answers there, or whoever does shows a certificate that nothing vouches for. */
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
    why: 'Nothing was sent. Use the pairing link that the server prints: it names the certificate of a server that vouches for itself.',
    next: [`tapetree attach '${shown}/#pair=<code>&fingerprint=<fingerprint>'`],
    cause,
  })
}

/** Of the error, or of one behind it. */
function certificateCode(error: unknown): string | undefined {
  for (let each = error; each instanceof Error; each = each.cause) {
    const { code } = each as NodeJS.ErrnoException
    if (code !== undefined && certificateCodes.test(code)) return code
  }
  return undefined
}

/** As OpenSSL and Node name them. */
const certificateCodes = new RegExp(
  `CERT|^UNABLE_TO_(?:VERIFY|GET_ISSUER|DECODE_ISSUER)|^(?:INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH|PATH_LENGTH_EXCEEDED)$|^${wrongCertificateCode}$`,
)
