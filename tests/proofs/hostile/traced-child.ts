import { execFile, type ExecFileException } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const watched =
  `execve,execveat,connect,bind,sendto,sendmsg,open,openat,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,
link,linkat,symlink,symlinkat,mknod,mknodat,truncate,ftruncate,chmod,fchmod,fchmodat,chown,lchown,fchown,fchownat,utimensat,
setxattr,lsetxattr,fsetxattr,removexattr,mount`.replaceAll('\n', '')

export interface Seen {
  stdout: string
  /** What it called after its own start. */
  calls: string[]
  /** Why it did not end by itself, or not well. */
  failure?: string
}

/** Runs a program of this folder without a terminal, under the eyes of the kernel. */
export async function traceChild(options: {
  program: string
  args: readonly string[]
  cwd: string
  env: NodeJS.ProcessEnv
  traceFile: string
  limitMs: number
}): Promise<Seen> {
  const { program, args, cwd, env, traceFile, limitMs } = options
  const path = fileURLToPath(new URL(program, import.meta.url))
  const node = [process.execPath, '-C', '@tapetree/source', path, ...args]
  const ended = await promisify(execFile)(
    'strace',
    // With -y, whatever a number stands for is named beside it.
    ['-f', '-y', '-qq', '-I', '2', '-s', '4096', '--seccomp-bpf', '-e', `trace=${watched}`, '-o', traceFile, ...node],
    // What goes through a ring is not seen. With -I 2, strace heeds SIGTERM and passes it on.
    {
      cwd,
      env: { ...env, UV_USE_IO_URING: '0' },
      timeout: limitMs,
      killSignal: 'SIGTERM',
      maxBuffer: 64 * 1024 * 1024,
    },
  ).catch(({ stdout = '', stderr = '', killed }: ExecFileException): Omit<Seen, 'calls'> => {
    return { stdout, failure: killed ? `it takes more than ${limitMs / 1000} s` : stderr }
  })
  const [start = '', ...calls] = (await readFile(traceFile, 'utf8')).split('\n')
  if (!/^\d+ +execve\(/.test(start)) throw new Error(`The trace does not begin with the program: ${start}`)
  return { ...ended, calls }
}
