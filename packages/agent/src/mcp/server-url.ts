/**
 * Why nothing is sent to an address and no browser is opened for it, if so. Only `https` is trusted with tokens, and `http` on this
 * machine.
 */
export function urlProblem(address: string): string | undefined {
  const url = URL.parse(address)
  if (!url) return 'It is not a valid URL.'
  if (url.username !== '' || url.password !== '') return 'It contains a user name or a password; use a header.'
  if (url.protocol === 'https:') return undefined
  if (url.protocol !== 'http:') return 'Only https addresses are used, and http on this machine.'
  return isLoopback(url) ? undefined : 'http is used only on this machine; write https.'
}

export function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(hostname)
}
