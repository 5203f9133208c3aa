import sys,time,os
sys.path.insert(0,'benchmarks'); import cores
import numpy as np, missratio as mr, cProfile, pstats
from missratio.rows import _source as S
from threadpoolctl import threadpool_limits
X,y=cores.table()
Xm,_=cores.table(missing=.1); Xm[:cores.N_ROWS][np.isnan(Xm[:cores.N_ROWS])]=0.
phi=mr.LogisticMissingness(np.full(50,np.log(1/9)),0.)
perm=np.random.default_rng(0).permutation(len(y)); 
fits={'complete':(mr.KLIEP(),X,y),'entries':(mr.KLIEP(missingness={1:phi}),Xm,y)}
for rnd in range(2):
  for name,(r,x,l) in fits.items():
    for B,C,L in ((32,64,8),(64,64,8),(128,64,8),(128,128,8),(256,64,8),(256,256,8),(512,128,8)):
        S.BLOCKS,S.CHUNKS,S.LARGER_BLOCKS=B,C,L
        out=[]
        for t in (1,16):
            if t==1 and rnd: continue
            with threadpool_limits(t):
                b=[]
                for _ in range(2 if t==1 else 6):
                    a=time.perf_counter(); r.fit(x,l); b.append(time.perf_counter()-a)
                out.append(min(b))
        print(name,B,C,L,[round(o,4) for o in out],flush=True)
S.BLOCKS,S.CHUNKS=32,64
with threadpool_limits(16):
    p=cProfile.Profile(); p.enable(); mr.KLIEP().fit(X,y); p.disable()
pstats.Stats(p).sort_stats('tottime').print_stats(22)
