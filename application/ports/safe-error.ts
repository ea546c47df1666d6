/** An error whose message names things and places and holds no values: it may be stored, logged and shown. */
export abstract class SafeError extends Error {}
