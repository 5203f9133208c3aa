import os; os.environ.update(OPENBLAS_NUM_THREADS='1',OMP_NUM_THREADS='1')
import numpy as np, time, multiprocessing as mp
def job(kind, q, bar):
    x=np.random.default_rng(0).normal(size=4096); o=np.empty_like(x)
    A=np.random.default_rng(0).normal(size=(1310,50)); t=np.ones(50)/50; p=np.empty(1310); g=np.empty(50)
    B=np.random.default_rng(0).normal(size=(4*1310,50)); pb=np.empty(4*1310)
    big=np.ones(20_000_000)
    bar.wait(); a=time.perf_counter(); n=0
    while time.perf_counter()-a<.7:
        if kind=='exp':
            for _ in range(50): np.exp(x,out=o)
            n+=50*4096
        elif kind=='gemv512K':
            for _ in range(10): np.dot(A,t,out=p); np.exp(p,out=p); np.dot(p,A,out=g)
            n+=10*1310*50
        elif kind=='gemv2M':
            for _ in range(4): np.dot(B,t,out=pb); np.exp(pb,out=pb); np.dot(pb,B,out=g)
            n+=4*4*1310*50
        elif kind=='stream':
            big.sum(); n+=len(big)
        elif kind=='streamgemv':
            M=big.reshape(-1,50)
            for i in range(0,len(M),1310*2):
                b=M[i:i+1310*2]; s=b@t; np.exp(s,out=s); s@b
            n+=len(big)
    q.put(n/(time.perf_counter()-a))
for kind in ('exp','gemv512K','gemv2M','stream','streamgemv'):
    base=None
    for k in (1,2,4,8,16):
        q=mp.Queue(); bar=mp.Barrier(k); ps=[mp.Process(target=job,args=(kind,q,bar)) for _ in range(k)]
        [p.start() for p in ps]; tot=sum(q.get() for _ in ps); [p.join() for p in ps]
        base=base or tot; print(kind,k,f"{tot/1e9:.2f} Gnum/s, speed-up {tot/base:.2f}",flush=True)
