// In a file of its own: the declarations of this package must not need those of `ws`, which its users do not have.

/** The JSON-RPC messages of one connection. A write resolves when the socket has taken the message. */
export interface EditorStream {
  readable: ReadableStream<object>
  writable: WritableStream<object>
}
