import type { ToolOutput } from './tool.ts'

/** A failed call that the model can correct: the message is a sentence for the model. */
export class ToolProblem extends Error {
  override readonly name = 'ToolProblem'
}

/** Returns problems, and errors of the file system, as the result of the call. Other errors are rethrown. */
export async function answerProblems(work: () => Promise<ToolOutput>): Promise<ToolOutput> {
  try {
    return await work()
  } catch (error) {
    const content = sentenceFor(error)
    if (content === undefined) throw error
    return { content, isError: true }
  }
}

/**
 * The result that `answerProblems` would give, as a sentence. Undefined if the work succeeds, or fails in a way
 * the model cannot correct.
 */
export async function problemOf(work: () => Promise<void> | void): Promise<string | undefined> {
  try {
    await work()
    return undefined
  } catch (error) {
    return sentenceFor(error)
  }
}

function sentenceFor(error: unknown): string | undefined {
  if (error instanceof ToolProblem) return error.message
  return isSystemError(error) ? sentenceOf(error) : undefined
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'errno' in error
}

export function hasCode(error: unknown, ...codes: string[]): boolean {
  return isSystemError(error) && error.code !== undefined && codes.includes(error.code)
}

const sentences: Record<string, string> = {
  EACCES: 'Permission denied',
  EPERM: 'The system does not permit it',
  EROFS: 'The file system is read-only',
  ENOSPC: 'No space is left on the disk',
  EDQUOT: 'The disk quota is exhausted',
  ENOENT: 'There is no such file or folder',
  ENOTDIR: 'A part of the path is a file, not a folder',
  EISDIR: 'It is a folder',
  ELOOP: 'The path is a cyclic symbolic link, or was replaced by a link just now',
  ENAMETOOLONG: 'The path or a name in it is too long',
  EMFILE: 'Too many files are open',
  EAGAIN: 'Nothing can be read from it at this time',
}

function sentenceOf(error: NodeJS.ErrnoException): string {
  const place = error.path === undefined || error.path.startsWith('/proc/self/fd/') ? '' : `: ${error.path}`
  return `${sentences[error.code ?? ''] ?? error.message}${place}.`
}
