/** What the runs of a server say of who hosts them. One that hosts a session for somebody else, as a terminal does, says another name. */
export const serverOwner = 'server'

/** Stands for a token where none is needed: in this process, or over its Unix socket. */
export const localUser = 'unix-socket'
