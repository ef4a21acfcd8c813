/** An option of a server is wrong. The message is a sentence for the person who set it. */
export class OptionError extends Error {
  override readonly name = 'OptionError'
}
